"""The parts of soak.sh that are no shell: the scenario, and the table."""

import json
import statistics
import sys

from memory import read


def scenario(rate, minutes):
    push = {"do": "push", "rate": rate, "seconds": 60}
    steps = [{"do": "connect"}, push | {"name": "warms", "seconds": 20}] + [push] * minutes
    return {"name": "soak", "users": 2000, "connections": 500, "steps": steps}


def table(report, samples):
    steps = [s for s in report["steps"] if s["streams"]][1:]
    names = sorted(set().union(*samples) - {"time", "lag"})
    memory = " | ".join(f"{name}, MB" for name in names)
    print(f"| minute | pushes/s | p50, ms | p99, ms | {memory} | figures behind, s |")
    print("|---|" + "---:|" * (len(names) + 4))
    # The last sample of each minute, counted back from the end of the run.
    end = samples[-1]["time"]
    for number, step in enumerate(steps, 1):
        stream = step["streams"][0]
        until = end - 60 * (len(steps) - number)
        sample = min(samples, key=lambda s: abs(s["time"] - until))
        cells = [f"{number}", f"{step['deliveries'] / step['seconds']:,.0f}"]
        cells += [f"{stream['postToDevice'][k]:.1f}" for k in ("p50", "p99")]
        cells += [f"{sample[n] / 1024:.1f}" for n in names] + [f"{sample['lag']:.1f}"]
        print("| " + " | ".join(cells) + " |")
    worst = max(s["streams"][0]["postToDevice"]["p99"] for s in steps)
    middle = statistics.median(s["streams"][0]["postToDevice"]["p99"] for s in steps)
    print(f"\np99 of the worst minute {worst:.1f} ms, of the median minute {middle:.1f} ms; lost {report['lost']}")
    return worst <= 3 * middle and report["lost"] == 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["scenario", rate, minutes]:
            print(json.dumps(scenario(int(rate), int(minutes))))
        case ["table", report, file]:
            with open(report, encoding="utf-8") as opened:
                sys.exit(0 if table(json.load(opened), read(file)) else 1)
