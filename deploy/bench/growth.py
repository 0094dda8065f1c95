"""The parts of growth.sh that are no shell: the load's scenario, and the tables."""

import itertools
import json
import statistics
import sys

USERS_WITH_HISTORY = 20
DEVICES = 400
ROUNDS = 5  # of coming back, because the kernel counts processor time in steps of 10 ms
COLUMNS = [
    "push, µs", "of that PostgreSQL", "p50, ms", "rows written", "rows scanned", "pages", "WAL, bytes",
    "long history, µs", "PostgreSQL", "p50, ms", "pages", "connect, µs", "PostgreSQL", "p50, ms",
]


def scenario(rate, each):
    """Pushes to every user, then to those who have a long history, then everybody comes back."""
    push = {"do": "push", "rate": rate, "seconds": 10}
    back = [[{"do": "disconnect"}, {"do": "connect", "name": f"connect {n}"}] for n in range(ROUNDS)]
    return {
        "name": "growth", "users": DEVICES // each, "devicesPerUser": each,
        "steps": [
            {"do": "connect", "name": "first connect"},
            push | {"name": "push"},
            push | {"name": "long history", "users": USERS_WITH_HISTORY},
            *itertools.chain(*back),
        ],
    }


def processor(steps, count):
    """Microseconds of every process but the load's own, and of PostgreSQL."""
    total = database = 0
    for step in steps:
        spent = {name: process["cpuMicroseconds"] for name, process in step["resources"]["processes"].items()}
        total += sum(value for name, value in spent.items() if name not in ("load", "tenant"))
        database += spent["postgres"]
    return [f"{total / count:,.0f}", f"{database / count:,.0f}"]


def row(report):
    steps = {step["name"]: step for step in report["steps"]}
    cells = []
    for name in ("push", "long history"):
        stream = steps[name]["streams"][0]
        count = stream["pushes"]
        database = steps[name]["resources"]["database"]
        written = sum(database[key] for key in ("rowsInserted", "rowsUpdated", "rowsDeleted"))
        cells += processor([steps[name]], count) + [f"{stream['postToDevice']['p50']:.1f}"]
        if name == "push":
            cells += [f"{written / count:.1f}", f"{database['rowsScanned'] / count:,.1f}"]
        cells.append(f"{database['pages'] / count:.0f}")
        if name == "push":
            cells.append(f"{database['walBytes'] / count:,.0f}")
    back = [steps[f"connect {n}"] for n in range(ROUNDS)]
    count = sum(step["connections"]["count"] for step in back)
    median = statistics.median(step["connections"]["toCaughtUp"]["p50"] for step in back)
    return cells + processor(back, count) + [f"{median:.1f}"]


def line(cells):
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["scenario", rate, each]:
            print(json.dumps(scenario(int(rate), int(each))))
        case ["head", axis]:
            print(line([axis] + COLUMNS))
            print("|---|" + "---:|" * len(COLUMNS))
        case ["row", step, file]:
            with open(file, encoding="utf-8") as report:
                print(line([f"{int(step):,}"] + row(json.load(report))))
