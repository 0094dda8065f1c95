"""Prints what many-devices.sh has measured, as tables of Markdown: reports of the generators, and samples of memory."""

import json
import pathlib
import sys

from memory import read

samples = [{name: kilobytes for name, kilobytes in s.items() if name != "time"} for s in read(sys.argv[1])]
reports = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[2:]]


def steps(call):
    """Of each report the step that pushes by such calls."""
    return [next(s for s in r["steps"] if s["streams"] and s["streams"][0]["call"].startswith(call)) for r in reports]


def slowest(steps, what):
    """The latency of the generator that saw the worst."""
    worst = max((s["streams"][0][what] for s in steps), key=lambda summary: summary["p99"])
    return f"{worst['p50']:,.0f} / {worst['p99']:,.0f} ms"


connected = [s for r in reports for s in r["steps"] if s.get("connections")]
single, everybody = steps("single"), steps("global")
faults = sum(sum(r["faults"].values()) for r in reports)
rows = {
    "devices": f"{sum(r['devices'] for r in reports):,}",
    "all connected after": f"{max(s['seconds'] for s in connected):.0f} s",
    "single pushes, 500/s": f"{sum(s['deliveries'] for s in single):,}",
    "POST to device of those, p50 / p99": slowest(single, "postToDevice"),
    "deliveries of these and of 3 global pushes": f"{sum(s['deliveries'] for r in reports for s in r['steps']):,}",
    "POST to last device of those, p50 / p99": slowest(everybody, "postToLastDevice"),
    "lost, doubled, out of order or with the wrong device": sum(r["lost"] for r in reports) + faults,
    "connections that fell": sum(r["fallenDevices"] for r in reports),
}
print("| | |\n|---|---:|")
for what, figure in rows.items():
    print(f"| {what} | {figure} |")

most = max(samples, key=lambda sample: sum(sample.values()))
print("\n| memory at its highest, generators left out | MB |\n|---|---:|")
for name in sorted(most):
    print(f"| {name} | {most[name] / 1024:,.0f} |")
print(f"| together | {sum(most.values()) / 1024:,.0f} |")
