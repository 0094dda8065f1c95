"""Prints what bars.sh has measured: medians of the rounds, with the lowest and the highest, as a table of Markdown."""

import json
import pathlib
import statistics
import sys

folder, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def reports(name):
    for number in range(1, rounds + 1):
        file = folder / f"{name}.{number}.json"
        if file.exists():
            yield json.loads(file.read_text())


def step(report, kind):
    """The last step of a kind, by what only such a step has."""
    return [s for s in report["steps"] if kind in s and s[kind]][-1]


def pushed(report):
    last = step(report, "streams")
    return last["deliveries"] / last["seconds"]


def latency(report, which="p50"):
    return step(report, "streams")["streams"][0]["postToDevice"][which]


def cpu(report):
    last = step(report, "streams")
    used = {k: v["cpuMicroseconds"] for k, v in last["resources"]["processes"].items() if k != "load"}
    return sum(used.values()) / last["streams"][0]["pushes"]


def memory(report):
    grown = [
        s["resources"]["processes"]["gateway-1"]["residentGrowthBytes"] for s in report["steps"] if "resources" in s
    ]
    return sum(grown) / report["devices"] / 1024


def line(what, name, figure, form):
    values = [figure(report) for report in reports(name)]
    if not values:
        print(f"| {what} | no run was complete |")
        return
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"| {what} | {format(middle, form)} | {format(low, form)} – {format(high, form)} |")


print("| | median | lowest – highest |\n|---|---|---|")
line("single pushes a second, closed loop", "highest", pushed, ",.0f")
line("pushes a second through batches of 100", "batch", pushed, ",.0f")
line("POST to device at 1,000/s, p50, ms", "at-1000", latency, ".2f")
line("POST to device at 1,000/s, p99, ms", "at-1000", lambda r: latency(r, "p99"), ".1f")
line("POST to device at 3,000/s, p50, ms", "at-3000", latency, ".2f")
line("POST to device at 3,000/s, p99, ms", "at-3000", lambda r: latency(r, "p99"), ".1f")
line("CPU of a push at 1,000/s, without the generator, µs", "at-1000", cpu, ",.0f")
line("resident memory of a gateway per idle TLS session of 10,000, KiB", "idle", memory, ".1f")
line("TLS connects a second, session open and backlog read", "connects",
     lambda r: step(r, "connections")["connections"]["perSecond"], ",.0f")
line("1,000 devices back to 50 pushes each: all delivered and acknowledged, s", "backlog",
     lambda r: step(r, "connections")["seconds"], ".2f")
line("global push to 10,000 TLS devices: the last one, ms", "broadcast",
     lambda r: step(r, "streams")["streams"][0]["postToLastDevice"]["p50"], ",.0f")
faults = [sum(r["faults"].values()) + r["lost"] for name in
          ("at-1000", "at-3000", "highest", "batch", "backlog", "connects", "idle", "broadcast") for r in reports(name)]
print(f"\nlost, doubled, out of order or with the wrong device: {sum(faults)}")
