"""How long until every process goes by what a person changes in the console.

    python3 in_force.py --invitation http://…/setup#… --api 127.0.0.1:7080 … --health 127.0.0.1:7180 … [--rounds 20]

Two changes by turns, each from the moment at which the console is called: the signature switch of an instance, in force
when every ingest refuses, or takes, an unsigned call; and a configuration, switched off or on, in force when every
ingest answers by it. Every other process is in force when the version of the control data it goes by is the newest.
Fails when one takes longer than `--within` milliseconds.
"""

import argparse
import http.client
import json
import re
import sys
import time

from console_client import Console

INSTANCE = "bench_force"


def ask(address, method, path, body=None):
    connection = http.client.HTTPConnection(address, timeout=10)
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(method, path, json.dumps(body) if body else None, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def push(api):
    """What an ingest answers to an unsigned push."""
    status, text = ask(api, "POST", f"/webapi/sync/single?instanceId={INSTANCE}", {
        "bizType": "SWITCHED", "linkToken": "nobody", "thirdMsgId": str(time.time_ns()), "payload": "x"})
    return status, json.loads(text).get("msg") or json.loads(text).get("code")


def version(health):
    """The version that a process goes by; None: it keeps no copy."""
    found = re.search(r"^mss_control_version ([0-9.]+)", ask(health, "GET", "/metrics")[1], re.M)
    return float(found.group(1)) if found else None


def until(begin, limit, what, holds):
    while not holds():
        if time.perf_counter() - begin > limit:
            sys.exit(f"not within {limit} s: {what}")
        time.sleep(0.005)
    return (time.perf_counter() - begin) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--invitation", required=True)
    parser.add_argument("--api", nargs="+", required=True)
    parser.add_argument("--health", nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--within", type=float, default=2_000)
    options = parser.parse_args()
    console = Console(options.invitation, f"force-{time.time_ns()}")
    console.confirm()
    place = f"/api/v1/instances/{INSTANCE}"
    console.call("POST", "/api/v1/instances", {"instanceId": INSTANCE, "name": "bench"})
    console.call("PUT", place, {"requiresSignature": False, "revision": revision(console, place)})
    configurations = f"{place}/configurations"
    console.call("POST", configurations, {
        "bizType": "SWITCHED", "description": "switched by the bench", "scope": "appointed", "target": "user",
        "repush": "all"})
    console.call("POST", f"{configurations}/SWITCHED/online")
    copies = [health for health in options.health if version(health) is not None]
    ingests, others = {api: [] for api in options.api}, {health: [] for health in copies}

    def measure(change, differs):
        versions = {health: version(health) for health in copies}
        answers = {api: push(api) for api in options.api}
        begin = time.perf_counter()
        status, answer = change()
        if status >= 300:
            sys.exit(f"the console refused: {status} {answer}")
        for api in options.api:
            ingests[api].append(until(begin, 10, f"{api} goes by it", lambda: push(api) != answers[api]))
            if not differs(push(api)):
                sys.exit(f"{api} answers {push(api)}")
        for health in copies:
            others[health].append(until(begin, 10, f"{health} goes by it", lambda: version(health) > versions[health]))

    for _ in range(options.rounds):
        console.confirm()
        for isOn in (True, False):
            revised = {"requiresSignature": isOn, "revision": revision(console, place)}
            measure(lambda: console.call("PUT", place, revised), lambda answer: (answer[0] == 401) == isOn)
        for word in ("offline", "online"):
            measure(
                lambda: console.call("POST", f"{configurations}/SWITCHED/{word}"),
                lambda answer: (answer[1] in ("SUCCESS", "NOT_ONLINE")) == (word == "online"))
    slowest = 0
    for name, times in [*ingests.items(), *others.items()]:
        times.sort()
        slowest = max(slowest, times[-1])
        what = "by its answers" if name in ingests else "by its version"
        print(f"{name} {what}: median {times[len(times) // 2]:.0f} ms, slowest {times[-1]:.0f} ms of {len(times)}")
    if slowest > options.within:
        sys.exit(f"slower than {options.within:.0f} ms")


def revision(console, place):
    return json.loads(console.page(place)[1])["revision"]


main()
