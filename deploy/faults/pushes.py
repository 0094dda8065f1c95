"""A backend that wants certainty, and what is checked of its notes against the database and against devices.

pushes.py run NOTES     pushes to users in turn until SIGTERM; what had no certain answer is repeated under its
                        thirdMsgId until it has one; each push that was answered as stored is noted. An answer that
                        says that no repeat can help ends the run
pushes.py check NOTES   reads the database's rows (target, thirdMsgId and oplogId, a tab between) from standard input;
                        exits with 1 when a promise was broken. With --devices a folder has what each user's device
                        printed, USER.jsonl of `mssctl listen --json`; with --failover pushes that were answered before
                        that instant may be gone, which is counted apart
pushes.py pauses NOTES  reads instants from standard input: how long it took until a push was answered after each
pushes.py gaps NOTES    reads lines INSTANT FAULT NUMBER [LEADER] from standard input: after each, until the next one,
                        the longest time without an answer and the slowest push, and how many pushes were answered
                        NOT_ONLINE. LEADER is the instant of a promotion, which the last of these is compared with.
                        Exits with 1 when the first time is above --limit after a fault of --limited, or the last one
                        above --not-online
pushes.py returns NOTES waits until each device of --devices has printed more than at the start of this command. Prints
                        when the first, half and all of them had, from the instant --since. Exits with 1 when one has
                        not --within so many seconds
"""

import argparse
import asyncio
import bisect
import collections
import itertools
import json
import os
import signal
import ssl
import statistics
import sys
import time

REPEAT_SECONDS = 0.2


# ---- pushing ---------------------------------------------------------------------------------------------------------


class Connection:
    """A keep-alive connection to one of the APIs, opened when it is needed."""

    def __init__(self, options):
        self.ports = itertools.cycle(map(int, options.api.split(",")))
        self.host = options.host
        self.tls = ssl.create_default_context(cafile=options.ca) if options.ca else None
        self.writer = None

    async def call(self, body):
        """The status and the JSON of the answer."""
        if self.writer is None:
            port = next(self.ports)
            self.reader, self.writer = await asyncio.open_connection(self.host, port, ssl=self.tls)
        head = (
            "POST /webapi/sync/single?instanceId=demo_app HTTP/1.1\r\nHost: t\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        answer = json.loads(await self.reader.readexactly(int(headers["content-length"])))
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), answer

    def close(self):
        if self.writer:
            self.writer.transport.abort()
        self.writer = None


class Backend:
    """A number of workers. Each worker has at most one push in flight."""

    def __init__(self, options):
        self.options = options
        self.numbers = itertools.count()
        self.is_stopping, self.deadline = False, float("inf")
        self.answers = collections.Counter()
        self.notes = open(options.notes, "w", buffering=1)
        self.unanswered = 0

    async def run(self):
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        await asyncio.gather(*(self.work(number) for number in range(self.options.workers)))
        self.answers["never answered"] += self.unanswered
        print(", ".join(f"{answer} {count}" for answer, count in sorted(self.answers.items()) if count))
        return 1 if self.unanswered else 0

    def stop(self):
        self.is_stopping = True
        self.deadline = time.monotonic() + 60

    async def work(self, number):
        connection = Connection(self.options)
        pause = self.options.workers / self.options.rate
        # The workers take turns.
        due = time.monotonic() + number / self.options.rate
        while True:
            await asyncio.sleep(max(0, due - time.monotonic()))
            if self.is_stopping:
                return
            await self.push(connection, next(self.numbers))
            due = max(due + pause, time.monotonic() - pause)

    async def push(self, connection, number):
        user = f"{self.options.prefix}-{number % self.options.users}"
        name = f"{self.options.prefix}-{number}"
        body = json.dumps({"bizType": "UCHAT", "linkToken": user, "thirdMsgId": name, "payload": name}).encode()
        sent = time.monotonic()
        for attempt in itertools.count(1):
            answer = await self.attempt(connection, body)
            if answer:
                note = {"user": user, "name": name} | answer | {"sent": sent, "answered": time.monotonic()}
                self.notes.write(json.dumps(note | {"attempts": attempt}) + "\n")
                return
            if self.is_stopping and time.monotonic() > self.deadline:
                self.unanswered += 1
                return
            await asyncio.sleep(REPEAT_SECONDS)

    async def attempt(self, connection, body):
        """The oplog's id and the answer's text when the push is stored for certain."""
        try:
            status, answer = await asyncio.wait_for(connection.call(body), self.options.timeout)
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            connection.close()
            self.answers[type(error).__name__] += 1
            return None
        self.answers[f"{status} {answer['msg']}"] += 1
        if not answer["success"] and not answer["retryable"]:
            sys.exit(f"refused for good: {answer}")
        return {"oplog": answer["oplogId"], "answer": answer["msg"]} if answer["success"] else None


# ---- checking --------------------------------------------------------------------------------------------------------


def read_notes(path):
    # The last line may be half written.
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def inversions(notes):
    """Pushes to one user of which the one was answered before the other was sent, and has the higher id."""
    users = collections.defaultdict(list)
    for note in notes:
        users[note["user"]].append(note)
    found = 0
    for pushes in users.values():
        earliest = float("inf")
        for push in sorted(pushes, key=lambda push: push["oplog"], reverse=True):
            found += earliest < push["sent"]
            earliest = min(earliest, push["answered"])
    return found


def check(options):
    notes = read_notes(options.notes)
    rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
    stored = {(user, name): int(oplog) for user, name, oplog in rows}
    gone = [note for note in notes if (note["user"], note["name"]) not in stored]
    lost = [note for note in gone if note["answered"] > options.failover]
    kept = [note for note in notes if (note["user"], note["name"]) in stored]
    found = {
        "answered and not stored": len(lost),
        "stored under another id": sum(stored[note["user"], note["name"]] != note["oplog"] for note in kept),
        "stored twice": len(rows) - len(stored),
        "against the order": inversions(kept),
    }
    contents = collections.defaultdict(set)
    for user, name, oplog in [(note["user"], note["name"], note["oplog"]) for note in notes] + rows:
        contents[user, int(oplog)].add(name)
    repeated = sum(note["attempts"] > 1 for note in notes)
    print(f"{len(notes)} pushes answered as stored, {repeated} of them after repeats; {len(rows)} in the database")
    if options.failover > float("-inf"):
        print(f"gone with the old primary: {len(gone) - len(lost)} of {len(notes)} answered")
    if options.devices:
        found |= check_devices(options, stored, contents)
    found["ids with two contents"] = sum(len(names) > 1 for names in contents.values())
    print("; ".join(f"{what}: {count}" for what, count in found.items()))
    return 0 if notes and not any(found.values()) else 1


def read_device(options, user):
    try:
        with open(os.path.join(options.devices, user + ".jsonl")) as file:
            oplogs = [json.loads(line) for line in file if line.endswith("\n")]
            return [(oplog["payload"], oplog["oplogId"]) for oplog in oplogs]
    except FileNotFoundError:
        return []


def check_devices(options, stored, contents):
    """What the devices have of what is stored, waiting a minute for the last of it."""
    users = {user for user, _ in stored}
    deadline = time.monotonic() + 60
    while True:
        printed = {user: read_device(options, user) for user in users}
        have = {(user, *oplog) for user, oplogs in printed.items() for oplog in oplogs}
        missing = sum((user, name, oplog) not in have for (user, name), oplog in stored.items())
        if not missing or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    doubled = disordered = gone = 0
    for user, oplogs in printed.items():
        doubled += len(oplogs) - len(set(oplogs))
        disordered += sum(later <= earlier for (_, earlier), (_, later) in itertools.pairwise(oplogs))
        gone += sum(stored.get((user, name)) != oplog for name, oplog in set(oplogs))
        for name, oplog in oplogs:
            contents[user, oplog].add(name)
    print(f"{sum(map(len, printed.values()))} deliveries to {len(users)} devices, {gone} of them of ids that are gone")
    if options.failover > float("-inf"):
        gone = 0
    return {
        "stored and not delivered": missing,
        "delivered twice": doubled,
        "delivered out of order": disordered,
        "delivered and never stored": gone,
    }


def pauses(options):
    """For each instant (a line of standard input) the time to the first answer after it."""
    answered = sorted(note["answered"] for note in read_notes(options.notes))
    found = []
    for line in sys.stdin:
        instant = float(line)
        index = bisect.bisect(answered, instant)
        if index < len(answered):
            found.append(answered[index] - instant)
    median, longest = statistics.median(found), max(found)
    print(f"{len(found)} times until the next answer: median {median:.1f} s, longest {longest:.1f} s")
    return 0


def gaps(options):
    notes = read_notes(options.notes)
    answered = sorted(note["answered"] for note in notes)
    faults = [line.split() for line in sys.stdin]
    ends = [float(instant) for instant, *_ in faults[1:]] + [answered[-1]]
    is_good = True
    for (text, fault, number, *leader), end in zip(faults, ends):
        start = float(text)
        times = [start, *answered[bisect.bisect(answered, start) : bisect.bisect(answered, end)], end]
        gap = max(later - earlier for earlier, later in itertools.pairwise(times))
        within = [note for note in notes if start < note["answered"] <= end]
        slowest = max((note["answered"] - note["sent"] for note in within), default=0)
        offline = [note["answered"] for note in within if note["answer"] == "NOT_ONLINE"]
        text = f"{fault} {number}: longest time without an answer {gap:.2f} s, slowest push {slowest:.2f} s"
        text += f", NOT_ONLINE {len(offline)} times"
        is_good &= fault not in options.limited.split(",") or gap <= options.limit
        promoted = float(leader[0]) if leader else start
        if leader:
            text += f", promotion after {promoted - start:.2f} s"
        if offline:
            last = max(offline) - promoted
            text += f", the last one {last:.2f} s after the {'promotion' if leader else 'fault'}"
            is_good &= last <= options.not_online
        print(text)
    return 0 if is_good else 1


def returns(options):
    def sizes():
        return {entry.name: entry.stat().st_size for entry in os.scandir(options.devices) if ".jsonl" in entry.name}

    before, times = sizes(), {}
    deadline = time.monotonic() + options.within
    while len(times) < len(before) and time.monotonic() < deadline:
        time.sleep(0.1)
        instant = time.monotonic() - options.since
        times |= {name: instant for name, size in sizes().items() if size > before[name] and name not in times}
    found = sorted(times.values())
    if found:
        print(f"  {found[0]:5.1f} s  the first device has data again")
    if len(found) * 2 >= len(before):
        print(f"  {found[(len(before) - 1) // 2]:5.1f} s  half of the devices have")
    if len(found) == len(before):
        print(f"  {found[-1]:5.1f} s  all {len(found)} devices have")
    else:
        print(f"  {len(before) - len(found)} of {len(before)} devices have not after {options.within} s")
    return 0 if len(found) == len(before) else 1


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("verb", choices=["run", "check", "pauses", "gaps", "returns"])
parser.add_argument("notes")
parser.add_argument("--host", default="127.0.0.1", help="of the APIs; looked up for each connection")
parser.add_argument("--api", default="7080", help="ports of the APIs, comma separated")
parser.add_argument("--ca", help="PEM file with the authority of the APIs, which are HTTPS then")
parser.add_argument("--prefix", default=f"f{os.getpid()}", help="of users and thirdMsgIds")
parser.add_argument("--users", type=int, default=50)
parser.add_argument("--workers", type=int, default=32)
parser.add_argument("--rate", type=int, default=300, help="pushes a second, when they are answered in time")
parser.add_argument("--timeout", type=float, default=40, help="of a call, in seconds: longer than an ingest waits")
parser.add_argument("--devices", help="folder of what the devices printed")
parser.add_argument("--limit", type=float, default=float("inf"), help="the longest gap in seconds")
parser.add_argument("--limited", default="", help="the faults for which it counts, comma separated")
parser.add_argument("--not-online", type=float, default=float("inf"), help="the longest time of NOT_ONLINE, in seconds")
parser.add_argument("--failover", type=float, default=float("-inf"), help="the instant, of the monotonic clock")
parser.add_argument("--since", type=float, default=0, help="the instant that times of devices count from")
parser.add_argument("--within", type=float, default=60, help="seconds until each device must have data again")
arguments = parser.parse_args()
if arguments.verb == "run":
    sys.exit(asyncio.run(Backend(arguments).run()))
else:
    sys.exit({"check": check, "pauses": pauses, "gaps": gaps, "returns": returns}[arguments.verb](arguments))
