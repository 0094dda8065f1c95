"""Prints what many-devices.sh has measured, as tables of Markdown. Processes are measured by the first generator."""

import json
import pathlib
import sys

reports = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]


def step(report, call):
    """The step that pushes by such calls."""
    return next(s for s in report["steps"] if s["streams"] and s["streams"][0]["call"].startswith(call))


def both(summary):
    return f"{summary['p50']:,.0f} / {summary['p99']:,.0f} ms"


connected = [s for r in reports for s in r["steps"] if s.get("connections")]
single = [step(r, "single") for r in reports]
everybody = [step(r, "global") for r in reports]
print("| | |\n|---|---:|")
print(f"| devices | {sum(r['devices'] for r in reports):,} |")
print(f"| all connected after | {max(s['seconds'] for s in connected):.0f} s |")
print(f"| single pushes delivered | {sum(s['deliveries'] for s in single):,} |")
print(f"| POST to device of those, p50 / p99, worst part | {both(max((s['streams'][0]['postToDevice'] for s in single), key=lambda s: s['p99']))} |")
print(f"| deliveries of 3 global pushes | {sum(s['deliveries'] for s in everybody):,} |")
faults = sum(sum(r["faults"].values()) for r in reports)
print(f"| lost, doubled, out of order or with the wrong device | {sum(r['lost'] for r in reports) + faults} |")
print(f"| connections that fell | {sum(r['fallenDevices'] for r in reports)} |")

print("\n| resident memory, MB | connected | at the end |\n|---|---:|---:|")
steps = [s["resources"]["processes"] for s in reports[0]["steps"] if "resources" in s]
idle, end = ({name: p["residentBytes"] / 1e6 for name, p in at.items() if name != "load"} for at in (steps[1], steps[-1]))
for name in sorted(end):
    print(f"| {name} | {idle[name]:,.0f} | {end[name]:,.0f} |")
print(f"| together | {sum(idle.values()):,.0f} | {sum(end.values()):,.0f} |")
