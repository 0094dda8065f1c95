#!/usr/bin/env python3
"""Runs the guide's Android sample, rebuilt, on the Java client, against a running service.

The sample is an app in Tests/JavaTests/sample that names only Android's and the vendor's classes. SampleDriver plays
Android. Each case starts the app as a process, and kills it at the end, as a phone does.
"""
import argparse
import base64
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

BIZ_TYPE = "UCHAT"


class Check(AssertionError):
    """The service or the app did not do what the case expects."""


def java_command():
    """Returns the command that runs a test program, which run.sh has written."""
    path = pathlib.Path(__file__).resolve().parents[2] / ".build-java/command"
    if not path.exists():
        sys.exit("the Java client is not built; call Tests/JavaTests/run.sh first")
    return path.read_text().split("\n")[:-1]


class App:
    """One process of the sample."""

    def __init__(self, test, folder):
        self.lines = []
        self.process = subprocess.Popen(
            test.command + ["org.mobilesync.tests.SampleDriver", str(folder)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split())

    def tell(self, command):
        self.process.stdin.write(command + "\n")

    def ask(self, command, answer):
        """Sends a command and returns the value of its answer."""
        before = len([line for line in self.lines if line[0] == answer])
        self.tell(command)
        eventually(f"the answer to {command}",
                   lambda: len([line for line in self.lines if line[0] == answer]) > before)
        return [line for line in self.lines if line[0] == answer][-1][1]

    def items(self):
        """Returns the shown items: the id, and the content."""
        return [(int(line[1]), base64.b64decode(line[4] if len(line) > 4 else ""))
                for line in self.lines if line[0] == "shown"]

    def shows(self, contents):
        expected = [content if isinstance(content, bytes) else content.encode() for content in contents]
        eventually(f"the app shows {expected}", lambda: [content for _, content in self.items()] == expected)

    def kill(self):
        self.process.kill()
        self.process.wait()


def eventually(what, condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Check(f"did not happen: {what}")
        time.sleep(0.02)


class Test:
    """The running service, and the built sample."""

    def __init__(self, options):
        self.options = options
        self.command = java_command()
        self.run = f"sample{random.randrange(10**8)}"

    def install(self, folder):
        """Makes the files with which the app is built."""
        (folder / "meta.config").write_bytes(pathlib.Path(self.options.meta_config).read_bytes())
        (folder / "mss-ca.pem").write_bytes(pathlib.Path(self.options.ca).read_bytes())

    def push(self, user, name, **payload):
        body = json.dumps({"bizType": BIZ_TYPE, "linkToken": user, "thirdMsgId": name, **payload})
        request = urllib.request.Request(
            f"{self.options.api}/webapi/sync/single?instanceId={self.options.instance}", body.encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            reply = json.load(answer)
        if not reply["success"]:
            raise Check(f"the push was refused: {reply}")
        return reply["msg"]

    def is_explained(self, user, name, state):
        command = [self.options.mssctl, "explain", "--api", self.options.api, "--instance", self.options.instance,
                   "--biz-type", BIZ_TYPE, "--to", user, "--id", name]
        eventually(f"{name} is {state}", lambda: subprocess.run(
            command, check=True, capture_output=True, text=True).stdout.startswith(state))


def life_cycle(test, folder, user):
    """K1: initialise does not connect, the foreground does, and the background disconnects at once."""
    app = App(test, folder)
    try:
        if app.ask(f"sign-in {user}", "signed-in") != "true":
            raise Check("the bind was refused")
        if test.push(user, "1", payload="stored") != "NOT_ONLINE" or app.ask("connected", "connected") != "false":
            raise Check("the app is connected before it enters the foreground")
        app.tell("foreground")
        app.shows(["stored"])
        if app.ask("connected", "connected") != "true":
            raise Check("the app is not connected in the foreground")
        app.tell("background")
        eventually("disconnected", lambda: app.ask("connected", "connected") == "false", 5)
        eventually("not online", lambda: test.push(user, f"again-{time.monotonic()}", payload="again") == "NOT_ONLINE")
        before = len(app.items())
        app.tell("foreground")
        eventually("the backlog has arrived", lambda: len(app.items()) > before)
    finally:
        app.kill()


def restart(test, folder, user):
    """K4, K5, K6, K7: text and bytes arrive, are confirmed, and do not come again after the process was killed."""
    content = bytes(range(256))
    text = '{"name":"Zoë \\"J\\""}'
    app = App(test, folder)
    try:
        app.tell("foreground")
        app.ask(f"sign-in {user} s", "signed-in")
        test.push(user, "text", payload=text)
        test.push(user, "bytes", payload="", binaryPayload=base64.b64encode(content).decode())
        app.shows([text, content])
        if [line[3] for line in app.lines if line[0] == "shown"] != ["false", "true"]:
            raise Check("isB does not tell text from bytes")
        test.is_explained(user, "text", "DELIVERED")
        test.is_explained(user, "bytes", "DELIVERED")
        device = app.ask("device", "device")
    finally:
        app.kill()
    app = App(test, folder)
    try:
        app.tell("foreground")
        app.ask(f"sign-in {user} s", "signed-in")
        test.push(user, "after", payload="after the restart")
        app.shows(["after the restart"])
        if app.ask("device", "device") != device:
            raise Check("the device id is another one after the restart")
    finally:
        app.kill()


def users(test, folder, user):
    """K2, K3: A's data waits while B is bound, and is delivered in order when A is bound again."""
    other = user + "-other"
    app = App(test, folder)
    try:
        app.tell("foreground")
        app.tell("unregister")
        app.ask(f"sign-in {user}", "signed-in")
        eventually("A is online", lambda: test.push(user, f"m{time.monotonic()}", payload="stacked") == "SUCCESS")
        test.push(user, "last", payload="last of A")
        test.is_explained(user, "last", "STORED")
        app.ask(f"sign-in {other}", "signed-in")
        app.tell("register")
        test.push(other, "b", payload="B's")
        app.shows(["B's"])
        app.tell("sign-out")
        app.ask(f"sign-in {user}", "signed-in")
        eventually("A's data has arrived", lambda: app.items()[-1][1] == b"last of A")
        ids = [number for number, _ in app.items()[1:]]
        if ids != list(range(1, len(ids) + 1)):
            raise Check(f"A's data came out of order: {ids}")
    finally:
        app.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", required=True, help="for example http://127.0.0.1:7080")
    parser.add_argument("--meta-config", required=True, help="the file that mssctl instance meta-config prints")
    parser.add_argument("--ca", required=True, help="the PEM file of the gateway's authority")
    parser.add_argument("--mssctl", required=True, help="the program, for mssctl explain")
    parser.add_argument("--instance", default="demo_app")
    test = Test(parser.parse_args())
    failed = False
    for case in [life_cycle, restart, users]:
        with tempfile.TemporaryDirectory() as folder:
            test.install(pathlib.Path(folder))
            try:
                case(test, pathlib.Path(folder), f"{test.run}-{case.__name__}")
                print(f"pass {case.__doc__}")
            except Check as error:
                print(f"FAIL {case.__doc__} {error}")
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
