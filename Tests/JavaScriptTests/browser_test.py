"""Pages in a real browser, against a gateway: python3 browser_test.py [https://127.0.0.1:7443] [options].

`--walk` selects the test: `page` for the demo page, `express` for Sync Express with the real client. Without an
address, the test runs its own gateway (fake_gateway.py, with its own certificate). With an address, `--push` is the
HTTP API for pushes, and `--restart` is a command that stops the gateway and starts it again. Needs
`pip install playwright websockets`, openssl, and Chromium, whose path is `--chromium`.
"""

import argparse
import http.server
import json
import pathlib
import re
import shlex
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from playwright.sync_api import expect, sync_playwright


# The store alone: a transaction is written whole or not at all; trimming keeps the newest payloads and removes others.
STORE = """async () => {
  const { IndexedDBStore } = await import('/mss-client.js');
  const store = new IndexedDBStore(`test ${crypto.randomUUID()}`);
  await store.open();
  const payload = new Uint8Array(3);
  const of = (at) => ['confirmed', `key ${at}`, { at, id: 2n ** 62n + BigInt(at), payload }];
  await store.write([...Array(20).keys()].map(of));
  const broken = await store.write([of(20), ['confirmed', 'bad', () => {}]]).then(() => 'written', () => 'refused');
  const found = async () => {
    const rows = await store.all('confirmed');
    return [rows.length, rows.filter(([, value]) => value.payload).length];
  };
  const before = await found();
  await store.trim(5, 9);
  const newest = await store.newest(3);
  const result = { broken, before, after: await found(), newest: newest.map(({ at, id }) => [at, String(id)]) };
  store.close();
  return result;
}"""


# A page with Sync Express around an API, and with the real client. `told` lists its events, `call` makes a call.
EXPRESS = """async ({ base, instance, user, session, bizType }) => {
  const { SyncClient } = await import('/mss-client.js');
  const { SyncExpress } = await import('/sync-express.js');
  const express = new SyncExpress({ base, patterns: ['/tasks/:id?'], name: `tasks of ${user}` });
  const told = [];
  for (const name of ['sent', 'refused', 'changed', 'pushRefused', 'quota', 'storeError']) {
    express.addEventListener(name, ({ detail }) => told.push([name, detail.uri ?? detail.change?.method]));
  }
  const call = async (method, path, body) => {
    const response = await express.fetch(path, { method, body: body && JSON.stringify(body) });
    return [response.status, response.headers.get('X-Sync-Express'), await response.json()];
  };
  const client = new SyncClient({ instanceId: instance, appVersion: '1.0' });
  express.attach(client, bizType);
  client.bind(user, session);
  await client.start();
  Object.assign(window, { express, client, told, call });
}"""


class Tasks:
    """The API that Sync Express wraps, on its own address, like an app's backend."""

    def __init__(self):
        self.tasks = {1: {"id": 1, "title": "Read the meter"}, 2: {"id": 2, "title": "Close the valve"}}
        self.changes = []
        tasks = self

        class Answering(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "null")
                status, answer = tasks.answer(self.command, self.path, body)
                text = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in [("Origin", "*"), ("Methods", "GET, POST, PATCH"), ("Headers", "*")]:
                    self.send_header(f"Access-Control-Allow-{name}", value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_OPTIONS = answer

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.base = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, method, path, body):
        if method == "OPTIONS":
            return 204, None
        key = int(path.removeprefix("/tasks").removeprefix("/") or 0)
        if method != "GET":
            self.changes.append([method, path, body])
        if method == "POST":
            key = max(self.tasks) + 1
            self.tasks[key] = {"id": key}
        if method != "GET":
            self.tasks[key].update(body)
        return 201 if method == "POST" else 200, self.tasks[key] if key else list(self.tasks.values())


class PlayedGateway:
    """A fake gateway in this process."""

    def __init__(self, folder):
        from fake_gateway import FakeGateway
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=127.0.0.1", "-keyout", str(key), "-out", str(certificate)], check=True,
                       capture_output=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.gateway = FakeGateway(certificate, key, port)
        self.gateway.start()
        self.address = f"https://127.0.0.1:{port}"

    def push(self, user, biz_type, text):
        self.gateway.push(user, biz_type, text)

    def restart(self):
        self.gateway.stop()
        self.gateway.start()

    def stop(self):
        self.gateway.stop()


class RealGateway:
    """A gateway that already runs."""

    def __init__(self, options):
        self.address, self.options, self.pushed = options.address, options, 0

    def push(self, user, biz_type, text):
        self.pushed += 1
        call = {"bizType": biz_type, "linkToken": user, "thirdMsgId": f"{time.time_ns()}", "payload": text}
        request = urllib.request.Request(
            f"{self.options.push}/webapi/sync/single?instanceId={self.options.instance}",
            json.dumps(call).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            result = json.load(answer)
        assert result["success"], result

    def restart(self):
        if self.options.restart:
            subprocess.run(shlex.split(self.options.restart), check=True, timeout=120)

    def stop(self):
        pass


class Walk:
    """Steps on a page that it opens. Each step continues from the state after the former one."""

    CONTEXT = {}

    def __init__(self, gateway, context, options):
        self.gateway, self.context, self.options = gateway, context, options
        self.problems = []
        self.user = options.user or f"u{time.time_ns()}"
        self.page = self.open()

    def new_page(self):
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(f"{line.text} at {line.location}")
                if line.type == "error" and "WebSocket" not in line.text else None)
        return page

    def push(self, text):
        self.gateway.push(self.user, self.options.biz_type, text)

    def walk(self):
        for step in self.steps():
            step()
            print(f"ok {step.__name__}")
        assert not self.problems, self.problems


class PageWalk(Walk):
    """The demo page."""

    def steps(self):
        return [self.store, self.live, self.looks, self.reload, self.by_hand, self.two_tabs, self.restart, self.buttons]

    def open(self):
        page = self.new_page()
        query = f"instance={self.options.instance}&user={self.user}&session={self.options.session}&connect"
        page.goto(f"{self.gateway.address}/?{query}")
        return page

    def row(self, text):
        return self.page.locator("#pushes > li", has_text=text)

    def connected(self, page=None):
        expect((page or self.page).locator("#status")).to_have_attribute("data-status", "2", timeout=60_000)

    def picture(self, name):
        if self.options.pictures:
            self.page.screenshot(path=str(pathlib.Path(self.options.pictures) / f"{name}.png"), full_page=True)

    def live(self):
        self.connected()
        self.push("first light")
        expect(self.row("first light")).to_have_attribute("data-given", "1")
        self.push('{"name":"James","text":"second"}')
        expect(self.row("James")).to_be_visible()
        self.push("third, the newest")
        expect(self.page.locator("#pushes > li").first).to_contain_text("third, the newest")
        expect(self.page.locator("#pushes > li.is-open")).to_have_count(0)
        self.picture("live")

    def looks(self):
        self.page.emulate_media(color_scheme="dark")
        self.picture("dark")
        self.page.set_viewport_size({"width": 390, "height": 844})
        self.picture("narrow")
        self.page.set_viewport_size({"width": 1180, "height": 820})
        self.page.emulate_media(color_scheme="light")

    def reload(self):
        """Confirmed oplogs are shown from the store, and are not given again."""
        self.page.reload()
        expect(self.row("first light")).to_have_attribute("data-stored", "")
        self.connected()
        self.push("after the reload")
        expect(self.row("after the reload")).to_be_visible()
        expect(self.row("first light")).to_have_attribute("data-stored", "")
        expect(self.page.locator("#pushes > li")).to_have_count(4)

    def by_hand(self):
        """An unconfirmed oplog is given again after a reload; a confirmed one is not."""
        self.page.locator("#auto-confirm").uncheck()
        self.push("please confirm")
        expect(self.row("please confirm")).to_have_class("push is-new is-open")
        self.picture("by-hand")
        self.page.goto(f"{self.page.url}&confirm=no")
        # On a slow machine it has also been sent again before the reload, so the number can be higher than two.
        expect(self.row("please confirm")).to_contain_text(re.compile(r"attempt ([2-9]|\d\d)"))
        self.row("please confirm").get_by_role("button", name="Confirm").click()
        expect(self.page.locator("#pushes > li.is-open")).to_have_count(0)
        self.page.reload()
        expect(self.row("please confirm")).to_have_attribute("data-stored", "")
        self.connected()
        self.page.locator("#auto-confirm").check()

    def two_tabs(self):
        """The second tab of a device waits, and connects when the first one is closed."""
        second = self.open()
        expect(second.locator("#notice")).to_contain_text("Another tab")
        self.connected()
        self.page.close()
        self.connected(second)
        self.page = second
        self.push("to the second tab")
        expect(self.row("to the second tab")).to_be_visible()

    def restart(self):
        self.push("before the restart")
        expect(self.row("before the restart")).to_be_visible()
        self.gateway.restart()
        self.push("after the restart")
        expect(self.row("after the restart")).to_have_attribute("data-given", "1", timeout=60_000)
        self.connected()
        expect(self.row("before the restart")).to_have_attribute("data-given", "1")

    def buttons(self):
        channel = self.page.locator(f"#channels > li[data-type='{self.options.biz_type}']")
        channel.get_by_role("button", name="History").click()
        expect(self.page.locator("#history-list > li", has_text="first light")).to_be_visible()
        self.picture("history")
        self.page.keyboard.press("Escape")
        channel.get_by_role("button", name="Suspend").click()
        expect(channel).to_contain_text("suspended")
        self.picture("suspended")
        channel.get_by_role("button", name="Resume").click()
        self.push("taken again")
        expect(self.row("taken again")).to_be_visible()
        self.page.locator("#unbind").click()
        expect(self.page.locator("#pushes > li")).to_have_count(0)
        self.picture("unbound")
        self.push("while nobody is bound")
        self.page.locator("#user").fill(self.user)
        self.page.locator("#session").fill(self.options.session)
        self.page.keyboard.press("Enter")
        expect(self.row("while nobody is bound")).to_be_visible()
        expect(self.row("first light")).to_be_visible()
        self.page.locator("#disconnect").click()
        expect(self.page.locator("#status")).to_have_attribute("data-status", "0")

    def store(self):
        found = self.page.evaluate(STORE)
        newest = [[at, str(2**62 + at)] for at in (19, 18, 17)]
        assert found == {"broken": "refused", "before": [20, 20], "after": [10, 5], "newest": newest}, found


class ExpressWalk(Walk):
    """Sync Express with the real client, on a page that the gateway serves."""

    # The API has another address. An app's page allows it in its policy, the gateway's page does not.
    CONTEXT = {"bypass_csp": True}

    def steps(self):
        return [self.offline_edit, self.flush, self.pushed]

    def open(self):
        self.tasks = Tasks()
        page = self.new_page()
        page.goto(f"{self.gateway.address}/")
        page.evaluate(EXPRESS, {
            "base": self.tasks.base, "instance": self.options.instance, "user": self.user,
            "session": self.options.session, "bizType": self.options.biz_type})
        return page

    def call(self, method, path, body=None):
        """Returns (status, X-Sync-Express, body)."""
        return tuple(self.page.evaluate("given => call(...given)", [method, path, body]))

    def connected(self):
        self.page.wait_for_function("client.status === 2", timeout=60_000)

    def network(self, is_online):
        """Cuts or restores the network, and waits until the page knows it.

        A request before that would fail, and the browser would report it.
        """
        self.context.set_offline(not is_online)
        self.page.wait_for_function("expected => navigator.onLine === expected", arg=is_online)

    def told(self, name, what):
        self.page.wait_for_function(
            "([name, what]) => told.some((one) => one[0] === name && one[1] === what)", arg=[name, what])

    def offline_edit(self):
        """An offline edit is visible at once, and no request leaves the device."""
        self.connected()
        assert self.call("GET", "/tasks") == (200, None, list(self.tasks.tasks.values()))
        self.network(is_online=False)
        assert self.call("PATCH", "/tasks/1", {"isDone": True}) == (
            202, "queued", {"id": 1, "title": "Read the meter", "isDone": True})
        status, mark, made = self.call("POST", "/tasks", {"title": "Paint the door"})
        assert (status, mark, made["id"][0]) == (202, "queued", "~"), made
        self.call("PATCH", f"/tasks/{made['id']}", {"isDone": True})
        seen = [{"id": 1, "title": "Read the meter", "isDone": True}, {"id": 2, "title": "Close the valve"},
                {"id": made["id"], "title": "Paint the door", "isDone": True}]
        assert self.call("GET", "/tasks") == (200, "cache", seen)
        assert not self.tasks.changes and self.page.evaluate("told") == [], self.tasks.changes

    def flush(self):
        """Back online, the changes are sent in order, each once, with the server's key of the created object."""
        self.network(is_online=True)
        assert self.page.evaluate("express.flush()") == 0
        expected = [["PATCH", "/tasks/1", {"isDone": True}], ["POST", "/tasks", {"title": "Paint the door"}],
                    ["PATCH", "/tasks/3", {"isDone": True}]]
        assert self.tasks.changes == expected, self.tasks.changes
        assert self.page.evaluate("told") == [["sent", method] for method, *_ in expected]
        assert self.call("GET", "/tasks") == (200, None, list(self.tasks.tasks.values()))

    def pushed(self):
        """A push over the WebSocket refreshes a cached object for offline use, and marks another one as stale."""
        self.connected()
        self.tasks.tasks[2]["title"] = "Open the valve"
        self.push(json.dumps({"resources": [
            {"uri": "/tasks/1", "action": "invalidate"}, {"uri": "/tasks/2", "action": "refresh"}]}))
        self.told("changed", "/tasks/2")
        self.network(is_online=False)
        assert self.call("GET", "/tasks/2") == (200, "cache", {"id": 2, "title": "Open the valve"})
        assert self.call("GET", "/tasks/1")[:2] == (200, "stale")


WALKS = {"page": PageWalk, "express": ExpressWalk}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", nargs="?", help="of the gateway; absent: a fake gateway")
    parser.add_argument("--walk", choices=WALKS, default="page")
    parser.add_argument("--push", default="http://127.0.0.1:7080", help="address of the HTTP API")
    parser.add_argument("--restart", help="command that restarts the gateway")
    parser.add_argument("--instance", default="demo_app")
    parser.add_argument("--user", help="absent: a new user for each run")
    parser.add_argument("--session", default="s1")
    parser.add_argument("--biz-type", default="UCHAT")
    parser.add_argument("--pictures", help="folder for screenshots")
    parser.add_argument("--chromium", default="/usr/bin/chromium-headless-shell")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        gateway = RealGateway(options) if options.address else PlayedGateway(pathlib.Path(folder))
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        # A test gateway has a self-signed certificate; the browser checks `wss` in the same way as `https`.
        walk = WALKS[options.walk]
        context = browser.new_context(
            ignore_https_errors=True, viewport={"width": 1180, "height": 820}, **walk.CONTEXT)
        try:
            walk(gateway, context, options).walk()
        finally:
            browser.close()
            gateway.stop()


if __name__ == "__main__":
    main()
