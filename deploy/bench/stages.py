"""The stages of pushes in a network capture: stages.py CAPTURE API_PORT BROKER_PORT

Each push of a load has a thirdMsgId of its own, which is readable in HTTP requests and in AMQP bodies. Its first
segments on each connection part its way: request, command to the broker, command from it, notice to it, notice from it.
"""

import re
import statistics
import struct
import sys
from collections import defaultdict

STAGES = [  # name, from, to
    ("ingest: request to command", "request", "to broker 1"),
    ("broker: command", "to broker 1", "from broker 1"),
    ("writer and database: command to notice", "from broker 1", "to broker 2"),
    ("broker: notice", "to broker 2", "from broker 2"),
    ("request to notice at the gateway", "request", "from broker 2"),
    ("request to response", "request", "response"),
]


def segments(path):
    """The TCP segments with a payload of a capture with nanoseconds: time, ports, payload."""
    with open(path, "rb") as capture:
        if struct.unpack("<I", capture.read(24)[:4])[0] != 0xA1B23C4D:
            sys.exit(f"{path}: not a capture with nanoseconds (tcpdump --time-stamp-precision=nano)")
        while len(head := capture.read(16)) == 16:
            seconds, nanoseconds, length, _ = struct.unpack("<IIII", head)
            packet = capture.read(length)[14:]
            if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            segment = packet[(packet[0] & 15) * 4:]
            source, target = struct.unpack("!HH", segment[:4])
            if payload := segment[(segment[12] >> 4) * 4:]:
                yield seconds * 1_000 + nanoseconds / 1e6, source, target, payload


def follow(path, api, broker):
    """The times of each push by stage, and the number of pushes in each AMQP segment that has any."""
    ids, times, waiting, together = None, defaultdict(dict), {}, []
    for time, source, target, payload in segments(path):
        if ids is None and (run := re.search(rb'"thirdMsgId":"([^"]*-)\d+"', payload)):
            # The users of the load are named load-RUN-NUMBER.
            ids = re.compile(rb"(?<!load-)" + re.escape(run[1]) + rb"\d+")
        found = set(ids.findall(payload)) if ids else set()
        if target == api and found:
            waiting[source] = found
            for push in found:
                times[push]["request"] = time
        elif source == api:
            for push in waiting.pop(target, ()):
                times[push]["response"] = time
        elif broker in (source, target) and found:
            way = "to broker" if target == broker else "from broker"
            together.append(len(found))
            for push in found:
                first, second = f"{way} 1", f"{way} 2"
                times[push].setdefault(second if first in times[push] else first, time)
    return times, together


def report(times, together):
    print(f"{len(times):,} pushes; {sum(together) / max(1, len(together)):.1f} in an AMQP segment")
    print(f"{'stage, ms':40}{'pushes':>8}{'p10':>8}{'p50':>8}{'p90':>8}{'p99':>8}")
    for name, first, last in STAGES:
        values = [stages[last] - stages[first] for stages in times.values() if first in stages and last in stages]
        if len(values) < 2:
            sys.exit(f"too few pushes have the stage {name}: is the load of mssctl in the capture?")
        cuts = statistics.quantiles(values, n=100)
        columns = "".join(f"{cuts[percent - 1]:8.2f}" for percent in (10, 50, 90, 99))
        print(f"{name:40}{len(values):8,}{columns}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    report(*follow(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
