#!/usr/bin/env python3
"""Kills the Java client again and again while it stores, shows and confirms.

Each of several devices is the conformance driver as a process. The script pushes data to its user, kills the process
(SIGKILL) each time that it has shown a few more oplogs, and starts it again with the same store. At the end every oplog
must have been shown, in order, and none twice: only the last oplog before a kill may repeat, because the app shows an
oplog before it confirms it.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PUSHES = 20
DEADLINE_SECONDS = 60


def java_command():
    """Returns the command that runs a test program, which run.sh has written."""
    path = pathlib.Path(__file__).resolve().parents[2] / ".build-java/command"
    if not path.exists():
        sys.exit("the Java client is not built; call Tests/JavaTests/run.sh first")
    return path.read_text().split("\n")[:-1]


def in_order(ids, cuts):
    """Returns the ids without a repeat of the last one before a kill. A repeat without a kill in between stays."""
    return [number for index, number in enumerate(ids)
            if index == 0 or number != ids[index - 1] or index not in cuts]


class Device:
    """One device: its process over all its starts, and the oplogs that it has shown."""

    def __init__(self, options, command, folder, user):
        self.options, self.user = options, user
        self.output = folder / f"{user}.out"
        self.errors = folder / f"{user}.err"
        self.command = command + [
            "--host", "127.0.0.1", "--port", str(options.gateway_port), "--ca", options.ca, "--instance",
            options.instance, "--device", f"{user}-d", "--user", user, "--session", "s1", "--store",
            str(folder / f"{user}.sqlite"), "--app-version", "1.0", "--transport", options.transport]
        self.process = None
        # The shown ids in order, and how far the output is read: reading all of it again and again takes the processor
        # from the devices.
        self.shown, self.read_upto = [], 0
        # The counts of shown oplogs at the kills: the index of the first oplog after each one.
        self.cuts = set()
        self.start()

    def start(self):
        with open(self.output, "ab") as output, open(self.errors, "ab") as errors:
            self.process = subprocess.Popen(self.command, stdout=output, stderr=errors)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.cuts.add(len(self.ids()))

    def ids(self):
        """Returns the shown ids in order. A line that a kill has cut off was not shown."""
        with open(self.output, "rb") as output:
            output.seek(self.read_upto)
            whole_lines = output.read().rpartition(b"\n")[0]
        if whole_lines:
            self.read_upto += len(whole_lines) + 1
            for line in whole_lines.split(b"\n"):
                # A cut-off line can be continued by the first line of the next start.
                oplog = json.loads(line[line.rfind(b'{"bizType"'):])
                if oplog["bizType"] == self.options.biz_type:
                    self.shown.append(oplog["oplogId"])
        return self.shown

    def push(self, first):
        """Pushes some oplogs, and checks that each one was accepted."""
        for number in range(first, first + PUSHES):
            body = json.dumps({"bizType": self.options.biz_type, "linkToken": self.user,
                               "thirdMsgId": f"{self.user}-{number}", "payload": f"{self.user} {number}"})
            request = urllib.request.Request(
                f"{self.options.api}/webapi/sync/single?instanceId={self.options.instance}", body.encode(),
                {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                reply = json.load(answer)
            if not reply["success"]:
                raise AssertionError(f"the push was refused: {reply}")

    def wait(self, what, condition):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                tail = self.errors.read_text(errors="replace")[-500:]
                raise AssertionError(f"{self.user}: {what} did not happen; {len(self.ids())} shown; {tail}")
            time.sleep(0.02)

    def run(self, kills):
        pushed = 0
        for _ in range(kills):
            shown = len(self.ids())
            self.push(pushed)
            pushed += PUSHES
            more = random.randint(1, 10)
            self.wait("progress after a kill", lambda: len(self.ids()) >= shown + more)
            self.kill()
            self.start()
        self.wait("the arrival of everything", lambda: len(set(self.ids())) == pushed)
        distinct = in_order(self.ids(), self.cuts)
        if distinct != sorted(set(distinct)) or len(distinct) != pushed:
            raise AssertionError(f"{self.user}: an oplog repeated or came out of order: {distinct}")
        return pushed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", required=True, help="for example http://127.0.0.1:7080")
    parser.add_argument("--gateway-port", type=int, required=True)
    parser.add_argument("--ca", required=True, help="the PEM file of the gateway's authority")
    parser.add_argument("--instance", default="demo_app")
    parser.add_argument("--biz-type", default="UCHAT")
    parser.add_argument("--transport", default="plain", choices=["plain", "websocket"])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--devices", type=int, default=4)
    options = parser.parse_args()
    command = java_command() + ["org.mobilesync.tests.ConformanceDriver"]
    failures, pushed = [], []
    run = f"kill{random.randrange(10**8)}"
    with tempfile.TemporaryDirectory() as folder:
        devices = [Device(options, command, pathlib.Path(folder), f"{run}-{number}")
                   for number in range(options.devices)]

        def work(device):
            try:
                pushed.append(device.run(options.kills // options.devices))
            except Exception as error:  # pylint: disable=broad-except
                failures.append(str(error))

        threads = [threading.Thread(target=work, args=[device]) for device in devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for device in devices:
            device.kill()
    if failures:
        sys.exit("\n".join(failures))
    print(f"{options.kills} kills of {options.devices} devices: {sum(pushed)} oplogs shown, in order, none lost, none "
          "doubled")


if __name__ == "__main__":
    main()
