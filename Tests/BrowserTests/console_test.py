"""The console in a real browser, row by row of the specification (C1 to C13), with the mistakes of users.

    python3 console_test.py --console http://127.0.0.1:7090 --invitation http://…/setup#… --api http://127.0.0.1:7080
        --gateway https://127.0.0.1:7443 --database "host=… dbname=…" --work INSTANCE [--pictures FOLDER]

The invitation comes from `mssctl console invite`. The service must have the demo instance (deploy/demo/demo_app.json).
`--work` is an instance whose devices ConsoleBrowserTests prepares: the operations work-1 to work-3 of `console-op` are
dead and would be accepted now, one more was accepted, one refused. `console-log` is connected, and its log has the line
`well, here it is`.
The database address is in the form of psql; the test uses it only to make sessions older. A folder receives pictures
of every page: light and dark, in English and Chinese, and at a phone's width. Needs `pip install playwright` and
Chromium, whose path is `--chromium`.
"""

import argparse
import base64
import hashlib
import hmac
import json
import pathlib
import re
import struct
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

PASSWORD = "correct horse battery"
INSTANCE = "space_browser"
KEYED = "space_keyed"
DEMO = "demo_app"


class TimeCodes:
    """The codes of an authenticator app (RFC 6238), each once. The console also takes the code of the next half minute,
    so the second code is there at once, and the third one within half a minute."""

    def __init__(self, secret):
        self.key = base64.b32decode(secret + "=" * (-len(secret) % 8))
        self.step = 0

    def next(self, page):
        self.step = max(self.step + 1, int(time.time()) // 30)
        while int(time.time()) // 30 < self.step - 1:
            page.wait_for_timeout(200)
        mac = hmac.new(self.key, struct.pack(">Q", self.step), hashlib.sha1).digest()
        offset = mac[-1] & 15
        return f"{(struct.unpack('>I', mac[offset:offset + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"


class Suite:
    """The steps in their order; each step continues from the state after the former one."""

    def __init__(self, options, browser):
        self.options, self.browser = options, browser
        self.base = options.console.rstrip("/")
        self.pictures = options.pictures and pathlib.Path(options.pictures)
        if self.pictures:
            self.pictures.mkdir(parents=True, exist_ok=True)
        self.hosts, self.complaints = set(), []
        self.context = self.new_context()
        self.page = self.context.new_page()

    def new_context(self, **more):
        context = self.browser.new_context(
            locale="en-GB", viewport={"width": 1280, "height": 900}, ignore_https_errors=True, **more)
        context.set_default_timeout(60_000)
        context.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        context.on("console", lambda message: self.record_complaint(message))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        return context

    def record_complaint(self, message):
        # The browser also logs intended refusals of the server.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    # ---- navigation -------------------------------------------------------------------------------------------------

    def go(self, path, page=None):
        response = (page or self.page).goto(self.base + path)
        assert response.status < 400, f"{path}: {response.status}"

    def at(self, instance, tab):
        self.go(f"/instances/{instance}/{tab}")

    def sign_in(self, name, password=PASSWORD, code="", page=None):
        page = page or self.page
        page.goto(self.base + "/sign-in")
        page.get_by_label("Account", exact=True).fill(name)
        page.locator("[name=password]").fill(password)
        page.get_by_label(re.compile("^Code")).fill(code)
        page.get_by_role("button", name="Sign in").click()

    def yes(self, page=None):
        dialog = (page or self.page).locator("#ask")
        expect(dialog).to_be_visible()
        dialog.locator("#ask-yes").click()

    def enter_password(self, password=PASSWORD, page=None):
        page = page or self.page
        expect(page.locator("#password")).to_be_visible()
        page.locator("#password-again").fill(password)
        # Like most users.
        page.keyboard.press("Enter")

    def enter_password_if_asked(self):
        """Enters the password when the last action asks for it, which happens after five minutes."""
        self.page.locator("#password[open], #notice:not(:empty), .fault").first.wait_for()
        if self.page.locator("#password").is_visible():
            self.enter_password()

    def fault(self, text, page=None):
        expect((page or self.page).locator(".fault, #notice.bad").filter(has_text=text).first).to_be_visible()

    def done(self, page=None):
        expect((page or self.page).locator("#notice")).to_contain_text("Done")

    def row(self, text, page=None):
        return (page or self.page).locator("tbody tr").filter(has_text=text)

    def call(self, path, body):
        request = urllib.request.Request(
            self.options.api + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def picture(self, page, name, whole=True):
        """Saves a picture of a page, or of its visible part, if there is a folder for pictures."""
        if self.pictures:
            page.screenshot(path=self.pictures / name, full_page=whole)

    def unsigned(self, instance):
        """Returns the HTTP status of a push without a signature."""
        push = {"bizType": "NONE", "linkToken": "u", "thirdMsgId": "unsigned", "payload": "x"}
        try:
            self.call(f"/webapi/sync/single?instanceId={instance}", push)
            return 200
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def age_sessions(self):
        """Makes the last password entry six minutes old, so that critical actions must ask for the password."""
        subprocess.run(
            ["psql", "-q", "-v", "ON_ERROR_STOP=1", self.options.database, "-c",
             "UPDATE console_session SET confirmed_at = confirmed_at - interval '6 minutes'"], check=True)

    def api(self, method, path, body=None, page=None, language="en"):
        """Calls the API like the page's own script. Returns (status, response)."""
        return (page or self.page).evaluate(
            """async ([method, path, body, language]) => {
            const response = await fetch(path, {method, headers: {
              'Content-Type': 'application/json', 'Accept-Language': language,
              'X-MSS-Form-Token': document.querySelector('meta[name=form-token]').content},
              body: body === null ? undefined : JSON.stringify(body)});
            return [response.status, await response.json().catch(() => null)]; }""", [method, path, body, language])

    def stays(self, path, page=None):
        """Checks that the browser itself has refused the form: a field is invalid, and the page is the same."""
        page = page or self.page
        expect(page.locator("input:invalid").first).to_be_visible()
        expect(page).to_have_url(re.compile(re.escape(path) + "$"))

    # ---- first account and sign-in ----------------------------------------------------------------------------------

    def step_01_first_administrator(self):
        """SEC14: the invitation creates the first administrator; it is valid once, and a short password is refused."""
        page = self.page
        page.goto(self.options.invitation)
        expect(page.get_by_label("Invitation")).not_to_have_value("")
        expect(page).to_have_url(re.compile("/setup$"))
        self.picture(page, "setup-light-en.png")
        page.get_by_label("Account", exact=True).fill("root")
        fields = page.locator("input[type=password]")
        fields.nth(0).fill("short")
        fields.nth(1).fill("short")
        page.get_by_role("button", name="Continue").click()
        self.stays("/setup")
        fields.nth(0).fill(PASSWORD)
        fields.nth(1).fill("another one, longer")
        page.get_by_role("button", name="Continue").click()
        self.stays("/setup")
        fields.nth(1).fill(PASSWORD)
        page.get_by_role("button", name="Continue").click()
        expect(page).to_have_url(self.base + "/sign-in")
        page.goto("about:blank")
        page.goto(self.options.invitation)
        page.get_by_label("Account", exact=True).fill("again")
        fields.nth(0).fill(PASSWORD)
        fields.nth(1).fill(PASSWORD)
        page.get_by_role("button", name="Continue").click()
        self.fault("This invitation is not valid")

    def step_02_sign_in(self):
        """C1: sign-in; a wrong password is refused, no page is shown without it, and the requested page opens."""
        page = self.page
        self.go(f"/instances/{DEMO}/records")
        expect(page).to_have_url(re.compile(r"/sign-in\?next="))
        self.picture(page, "sign-in-light-en.png")
        page.get_by_label("Account", exact=True).fill("root")
        page.locator("[name=password]").fill("wrong, quite wrong")
        page.get_by_role("button", name="Sign in").click()
        self.fault("are wrong")
        page.locator("[name=password]").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{self.base}/instances/{DEMO}/records")
        cookie = next(one for one in self.context.cookies() if one["name"] == "__Host-mss-session")
        assert cookie["httpOnly"] and cookie["secure"] and cookie["sameSite"] == "Strict", cookie

    # ---- instances --------------------------------------------------------------------------------------------------

    def step_03_instances(self):
        """C13: create, list, disable and enable an instance; an id in use is refused; an app key and meta.config."""
        page = self.page
        self.go("/instances")
        page.get_by_label(re.compile("^Instance id")).fill(DEMO)
        page.get_by_role("button", name="Create").click()
        self.fault("exists already")
        page.get_by_label(re.compile("^Instance id")).fill(INSTANCE)
        page.locator("input[name=name]").fill("Browser tests")
        page.get_by_role("button", name="Create").click()
        self.done()
        row = self.row(INSTANCE)
        expect(row).to_contain_text("Enabled")
        row.get_by_role("button", name="Disable").click()
        page.locator("#ask").get_by_role("button", name="Cancel").click()
        expect(row).to_contain_text("Enabled")
        row.get_by_role("button", name="Disable").click()
        self.yes()
        self.done()
        expect(self.row(INSTANCE)).to_contain_text("Disabled")
        self.row(INSTANCE).get_by_role("button", name="Enable").click()
        self.done()
        expect(self.row(INSTANCE)).to_contain_text("Enabled")
        # An instance with an app key and a session check through a mobile gateway.
        self.go("/instances")
        page.get_by_label(re.compile("^Instance id")).fill(KEYED)
        page.locator("[name=validatorUrl]").fill("https://tenant.example/mgw.htm")
        expect(page.locator("[name=gatewayAppId]")).to_be_hidden()
        page.locator("[name=validatorMode]").select_option("mgs")
        page.locator("[name=gatewayAppId]").fill("keyed")
        page.locator("[name=gatewayWorkspaceId]").fill("space")
        page.locator("[name=verdictLifetimeSeconds]").fill("60")
        page.locator("[name=appKey]").check()
        self.age_sessions()
        page.get_by_role("button", name="Create").click()
        expect(page.locator("#password-what")).to_have_text("Create")
        self.enter_password()
        secret = page.locator("#new-key [data-member=secret]")
        expect(secret).to_have_text(re.compile("^[A-Za-z0-9+/=]{44}$"))
        with page.expect_download() as download:
            page.get_by_role("link", name="Download meta.config with this key").click()
        config = json.loads(pathlib.Path(download.value.path()).read_text())
        assert config["instanceId"] == KEYED and config["appSecret"] == secret.inner_text(), config
        assert config["appKey"] == page.locator("#new-key [data-member=id]").inner_text(), config
        page.get_by_role("link", name="I have noted it").click()
        status, made = self.api("GET", f"/api/v1/instances/{KEYED}")
        assert made["validatorMode"] == "mgs" and made["verdictLifetimeSeconds"] == 60, made
        assert [key["purpose"] for key in made["keys"]] == ["device"], made

    def step_04_tabs(self):
        """C1: the instance is chosen first, and stays chosen; every tab opens; the overview updates itself."""
        page = self.page
        self.context.clear_cookies(name="mss-instance")
        self.go("/")
        expect(page).to_have_url(self.base + "/instances")
        expect(page.locator("h1")).to_have_text("Choose an instance")
        page.locator("nav.instance summary").click()
        page.locator("nav.instance").get_by_role("link", name=INSTANCE).click()
        expect(page.locator("nav.instance summary")).to_contain_text(INSTANCE)
        for tab in ["Configuration management", "Data query", "Devices", "Service management", "Operation records",
                    "Overview"]:
            page.locator("nav.tabs").get_by_role("link", name=tab).click()
            expect(page.locator("nav.tabs [aria-current=page]")).to_have_text(tab)
            expect(page.locator("h1")).to_have_text(tab)
        for path in ["/me", "/accounts", "/instances", "/api"]:
            self.go(path)
            expect(page.locator("nav.instance summary")).to_contain_text(INSTANCE)
            expect(page.locator("nav.tabs a")).to_have_count(6)
        self.go("/")
        expect(page).to_have_url(f"{self.base}/instances/{INSTANCE}/overview")
        expect(page.locator(".tile")).to_have_count(8)
        expect(page.locator(".chart svg")).to_have_count(4)
        for title in ["Pushes and arrivals per minute", "Not arrived", "Connected devices"]:
            expect(page.get_by_role("img", name=re.compile(title))).to_have_count(1)
        expect(page.locator(".chart").first.locator("text[data-axis]")).to_have_count(5)
        # A table that was opened stays open when data arrives.
        page.locator("#table-chart-pushes summary").click()
        expect(page.locator("#table-chart-pushes tbody tr")).to_have_count(12)
        shown = page.locator("[data-live] > p time")
        before = shown.get_attribute("data-local")
        expect(shown).not_to_have_attribute("data-local", before)
        expect(page.locator("#table-chart-pushes")).to_have_attribute("open", "")
        for process in ["mss-ingest", "mss-oplog-writer", "mss-gateway", "mss-console", "mss-statistics",
                        "mss-session-validator"]:
            expect(page.locator("[data-live]")).to_contain_text(process)

    # ---- configurations ---------------------------------------------------------------------------------------------

    def step_05_add(self):
        """C3: choices show and hide fields; the preselection; wrong fields are named; a new configuration is online."""
        page = self.page
        self.at(INSTANCE, "configurations")
        page.get_by_role("link", name="Add").click()
        choice = lambda name: page.get_by_label(name, exact=True)
        field = lambda name: page.locator(f"[name={name}]")
        for name in ["Appointed", "User", "Threshold"]:
            expect(choice(name)).to_be_checked()
        expect(field("multiDevice")).to_be_checked()
        expect(field("persistent")).to_be_checked()
        expect(field("checkSession")).not_to_be_checked()
        expect(field("threshold")).to_have_value("100")
        expect(field("immediate")).to_be_hidden()
        expect(field("verdictLifetimeSeconds")).to_be_hidden()
        choice("Device").check()
        expect(field("multiDevice")).to_be_hidden()
        expect(field("checkSession")).to_be_hidden()
        choice("User").check()
        field("checkSession").check()
        expect(field("verdictLifetimeSeconds")).to_be_visible()
        choice("All").check()
        expect(field("threshold")).to_be_hidden()
        field("persistent").uncheck()
        expect(choice("All")).to_be_hidden()
        choice("Global").check()
        expect(field("persistent")).to_be_hidden()
        expect(field("multiDevice")).to_be_hidden()
        expect(page.get_by_text("fixed for global data").first).to_be_visible()
        expect(field("immediate")).to_be_visible()
        choice("Appointed").check()
        field("persistent").check()
        choice("Threshold").check()
        field("checkSession").uncheck()
        # The browser refuses empty and out-of-range fields, the console the others.
        save = page.get_by_role("button", name="Save")
        save.click()
        self.stays("/new-configuration")
        field("bizType").fill("ORDER-NOTE")
        field("description").fill("  ")
        save.click()
        self.fault("This is required")
        field("description").fill("Notes on orders")
        field("threshold").fill("1001")
        save.click()
        self.stays("/new-configuration")
        field("threshold").fill("50")
        save.click()
        self.done()
        row = self.row("ORDER-NOTE")
        expect(row).to_contain_text("Online")
        expect(row).to_contain_text("Notes on orders")
        page.get_by_role("link", name="Add").click()
        field("bizType").fill("ORDER-NOTE")
        field("description").fill("once more")
        save.click()
        self.fault("exists already")
        field("bizType").fill("NEWS")
        choice("Global").check()
        save.click()
        self.done()
        page.get_by_role("link", name="Add").click()
        field("bizType").fill("FLEETING")
        field("description").fill("Not stored")
        field("persistent").uncheck()
        save.click()
        self.done()

    def step_06_list(self):
        """C2: search by ID, filter by online, the actions of each row, and a text when the list is empty."""
        page = self.page
        self.at(INSTANCE, "configurations")
        page.get_by_label("Sync ID").fill("order")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        # A screen reader announces the number of results, and the user continues from there.
        expect(page.locator("[data-results]")).to_be_focused()
        expect(page.locator("#notice[role=status]")).to_have_text("Found: 1")
        row = self.row("ORDER-NOTE")
        for action in ["Operate", "Offline"]:
            expect(row.locator(f"[aria-label='{action} ORDER-NOTE']")).to_have_count(1)
        expect(row.get_by_role("link", name="Operate")).to_be_visible()
        expect(row.get_by_role("button", name="Offline")).to_be_visible()
        expect(row.get_by_role("button", name="Delete")).to_have_count(0)
        page.get_by_label("Sync ID").fill("")
        page.get_by_label("Online").select_option("no")
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".empty")).to_have_text("No configuration here.")
        page.get_by_label("Online").select_option("yes")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("tbody tr")).to_have_count(3)

    def step_07_modify(self):
        """C4: details by clicking the ID, Modify and Save there; Sync ID and target cannot be changed."""
        page = self.page
        self.at(INSTANCE, "configurations")
        page.get_by_role("link", name="ORDER-NOTE", exact=True).click()
        expect(page.locator("dl").first).to_contain_text("Notes on orders")
        page.get_by_role("link", name="Modify").click()
        expect(page.locator("[name=bizType]")).to_be_disabled()
        expect(page.get_by_label("Device", exact=True)).to_be_disabled()
        page.locator("[name=description]").fill("Notes on every order")
        page.locator("[name=threshold]").fill("20")
        page.get_by_role("button", name="Save").click()
        self.done()
        expect(self.row("ORDER-NOTE")).to_contain_text("Notes on every order")

    def step_08_two_operators(self):
        """Two operators edit the same configuration: the second gets an error, and keeps the unsaved input."""
        page, other = self.page, self.context.new_page()
        for one in (page, other):
            self.go(f"/instances/{INSTANCE}/configurations/ORDER-NOTE?edit=1", one)
        other.locator("[name=description]").fill("By the other")
        other.get_by_role("button", name="Save").click()
        self.done(other)
        page.locator("[name=description]").fill("By me")
        page.get_by_role("button", name="Save").click()
        self.fault("Another operator has changed this meanwhile")
        expect(page.locator("[name=description]")).to_have_value("By me")
        page.get_by_role("link", name="Load the current state").click()
        expect(page.locator("[name=description]")).to_have_value("By the other")
        other.close()
        # The same with settings of an instance.
        other = self.context.new_page()
        for one in (page, other):
            self.go(f"/instances/{INSTANCE}/service", one)
        other.locator("[name=retentionDays]").fill("20")
        other.locator("form:has([name=retentionDays])").get_by_role("button", name="Save").click()
        self.done(other)
        page.locator("[name=validatorUrl]").fill("https://tenant.example/validate")
        page.locator("form:has([name=validatorUrl])").get_by_role("button", name="Save").click()
        self.fault("Another operator has changed this meanwhile")
        other.close()

    def step_09_online_delete(self):
        """C5, C10: offline and online with a confirmation; only an offline configuration can be deleted."""
        page = self.page
        self.at(INSTANCE, "configurations")
        row = self.row("FLEETING")
        row.get_by_role("button", name="Offline").click()
        page.locator("#ask").get_by_role("button", name="Cancel").click()
        expect(row.locator(".badge")).to_have_text("Online")
        row.get_by_role("button", name="Offline").click()
        expect(page.locator("#ask-title")).to_have_text("Offline FLEETING")
        self.yes()
        self.done()
        expect(self.row("FLEETING").locator(".badge")).to_have_text("Offline")
        expect(self.row("FLEETING").get_by_role("link", name="Operate")).to_have_count(0)
        # A page that still shows the configuration as offline after another operator has put it online.
        other = self.context.new_page()
        self.go(f"/instances/{INSTANCE}/configurations", other)
        self.row("FLEETING", other).get_by_role("button", name="Online").click()
        self.yes(other)
        self.done(other)
        other.close()
        self.row("FLEETING").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("dialog", name="Delete FLEETING")).to_be_visible()
        expect(page.get_by_role("dialog").get_by_role("button", name="Delete FLEETING")).to_be_visible()
        self.yes()
        self.enter_password_if_asked()
        self.fault("only a configuration that is offline can be deleted")
        page.reload()
        self.row("FLEETING").get_by_role("button", name="Offline").click()
        self.yes()
        self.done()
        self.row("FLEETING").get_by_role("button", name="Delete").click()
        self.yes()
        self.enter_password_if_asked()
        self.done()
        expect(self.row("FLEETING")).to_have_count(0)

    # ---- pushes and devices -----------------------------------------------------------------------------------------

    def step_10_browser_device(self):
        """C1: a device in the browser from the console; the list of devices contains it with its details."""
        page = self.page
        self.at(DEMO, "devices")
        link = page.get_by_role("link", name="Open a device in the browser")
        expect(link).to_have_attribute("href", re.compile("instance=demo_app"))
        # The gateway serves the device's page, with its own certificate.
        self.device_context = self.new_context()
        self.device = self.device_context.new_page()
        self.device.goto(f"{self.options.gateway}/?instance={DEMO}&user=console-u1&session=s1")
        self.device.get_by_role("button", name="Connect", exact=True).click()
        expect(self.device.get_by_text("Connected", exact=True)).to_be_visible()
        def listed():
            page.reload()
            return self.row("console-u1").count() == 1
        self.eventually("the device is listed", listed)
        row = self.row("console-u1")
        expect(row).to_contain_text("gateway-")
        expect(row.locator("time")).to_have_attribute("datetime", re.compile("^20"))
        device = row.locator("a").first.inner_text()
        # The overview shows it within seconds, not only at the next minute.
        self.at(DEMO, "overview")
        expect(page.locator("#connected")).to_have_text("1", timeout=20_000)
        # Searched by its id, connected or not.
        self.at(DEMO, "devices")
        page.get_by_label("Device id").fill(device)
        page.get_by_role("button", name="Search").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("#notice")).to_have_text("Found: 1")
        page.get_by_label("Device id").fill("d-unknown")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="It is not connected").click()
        expect(page.locator("h1")).to_have_text("d-unknown")
        self.picture(page, "device-unknown-light-en.png")
        self.device_id = device

    def eventually(self, what, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not in time: {what}"
            self.page.wait_for_timeout(200)

    def step_11_operate(self):
        """C6: a preview names the receivers and the reasons of the others; then the push; each wrong field is named."""
        page = self.page
        self.at(DEMO, "configurations")
        self.row("UCHAT").get_by_role("link", name="Operate").click()
        for name in ["iOS", "android"]:
            expect(page.locator(f"[name={name}]")).to_be_checked()
        expect(page.locator("[name=validDays]")).to_have_value("30")
        preview = page.get_by_role("button", name="Preview")
        page.locator("[name=linkToken]").fill("console-u1")
        page.locator("[name=payload]").fill("hello from the console <b>&amp;</b>")
        page.locator("[name=thirdMsgId]").fill("browser-1")
        page.locator("[name=appMinVersion]").fill("x.y")
        preview.click()
        self.fault("no version of numbers and dots")
        page.locator("[name=appMinVersion]").fill("")
        page.locator("[name=iOS]").uncheck()
        page.locator("[name=android]").uncheck()
        preview.click()
        self.fault("Tick at least one system")
        page.locator("[name=iOS]").check()
        page.locator("[name=android]").check()
        preview.click()
        expect(page.locator("#preview")).to_contain_text("sent to its devices")
        expect(page.locator("#preview b[data-member=reached]")).to_have_text("1")
        page.get_by_role("button", name="Send now").click()
        expect(page.locator("#sent")).to_contain_text("SUCCESS")
        expect(self.device.locator("body")).to_contain_text("hello from the console <b>&amp;</b>")
        # The same id again, and a user that never connected.
        expect(page.locator("[name=thirdMsgId]")).not_to_have_value("browser-1")
        page.locator("[name=thirdMsgId]").fill("browser-1")
        page.locator("[name=payload]").fill("once more")
        expect(page.locator("#sent")).to_be_hidden()
        preview.click()
        expect(page.locator("#preview")).to_contain_text("was used before")
        expect(page.get_by_role("button", name="Send now")).to_be_hidden()
        page.locator("[name=linkToken]").fill("console-nobody")
        page.locator("[name=thirdMsgId]").fill("browser-2")
        preview.click()
        expect(page.locator("#preview")).to_contain_text("no device gets it now")
        page.get_by_role("button", name="Send now").click()
        expect(page.locator("#sent")).to_contain_text("NOT_ONLINE")

    def step_12_global(self):
        """C6: a global push shows the number of receivers, and asks for the password."""
        page = self.page
        self.at(INSTANCE, "configurations")
        self.row("NEWS").get_by_role("link", name="Operate").click()
        expect(page.locator("[name=linkToken]")).to_have_count(0)
        page.locator("[name=payload]").fill("to everybody")
        page.locator("[name=thirdMsgId]").fill("browser-global")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#preview")).to_be_visible()
        self.age_sessions()
        page.get_by_role("button", name="Send now").click()
        expect(page.locator("#ask-text")).to_contain_text(re.compile(r"\d+ get it now"))
        self.yes()
        self.enter_password("not it, certainly")
        expect(page.locator("#password-fault")).to_have_text("The password is wrong.")
        self.enter_password()
        expect(page.locator("#sent")).to_contain_text("SUCCESS")

    def step_12_in_stages(self):
        """C6: a global push in stages shows the size of its first stage; it is widened, paused and stopped."""
        page = self.page
        self.at(INSTANCE, "configurations")
        self.row("NEWS").get_by_role("link", name="Operate").click()
        stages = page.locator("[name=stages]")
        expect(stages).to_be_hidden()
        page.get_by_label("in stages").check()
        expect(stages).to_have_value("1, 10, 100")
        stages.fill("10, 1, 100")
        page.locator("[name=payload]").fill("to some first")
        page.locator("[name=thirdMsgId]").fill("browser-stages")
        page.get_by_role("button", name="Preview").click()
        self.fault("Percentages that rise to 100")
        stages.fill("20, 60, 100")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#preview b[data-member=firstStage]")).to_have_text(re.compile(r"\d+"))
        page.get_by_role("button", name="Send now").click()
        expect(page.locator("#ask-text")).to_contain_text(re.compile(r"first stage .* is for \d+ devices"))
        self.yes()
        expect(page.locator("#sent")).to_contain_text("The first stage was started")
        page.get_by_role("link", name="To the roll-out").click()
        state = page.locator("#rollout-state")
        expect(state).to_have_text("running")
        expect(page.locator("section.card")).to_contain_text("1 / 3")
        page.get_by_role("button", name="Pause").click()
        expect(state).to_have_text("paused")
        expect(page.get_by_role("button", name="Widen")).to_have_count(0)
        page.get_by_role("button", name="Resume").click()
        expect(state).to_have_text("running")
        page.get_by_role("button", name="Widen").click()
        expect(page.locator("#ask-text")).to_contain_text("60 % of the devices")
        self.yes()
        expect(page.locator("section.card")).to_contain_text("2 / 3")
        expect(page.get_by_role("link", name="browser-stages~2")).to_be_visible()
        page.get_by_role("button", name="Stop and recall").click()
        self.yes()
        expect(state).to_have_text("stopped")
        expect(page.get_by_role("button", name="Stop and recall")).to_have_count(0)
        self.at(INSTANCE, "rollouts")
        expect(self.row("browser-stages")).to_contain_text("stopped")
        self.at(INSTANCE, "records")
        for action in ["Start roll-out", "Pause roll-out", "Resume roll-out", "Widen roll-out", "Stop roll-out"]:
            expect(self.row(action).first).to_be_visible()

    def step_13_data_query(self):
        """C7: by user: connected, figures and list; arrived or not; by device; "No data" for a user without data."""
        page = self.page
        def counted():
            self.go(f"/instances/{DEMO}/data?by=user&id=console-u1")
            return page.locator("#arrivals").inner_text() == "1"
        self.eventually("the push is in the figures as arrived", counted, 40)
        expect(page.locator("#pushes")).to_have_text("1")
        expect(page.locator("section.card h2").first).to_contain_text("Connected")
        expect(self.row("UCHAT").locator("time")).to_have_count(2)
        expect(self.row("UCHAT")).to_contain_text("Yes")
        device = page.locator("section.card a").first.inner_text()
        page.get_by_label("Query by").select_option("device")
        page.locator("[name=id]").fill(device)
        page.get_by_role("button", name="Query").click()
        expect(page.locator("section.card h2").first).to_contain_text("Connected")
        page.locator("[name=id]").fill("nobody-at-all")
        page.get_by_label("Query by").select_option("user")
        page.get_by_role("button", name="Query").click()
        expect(page.locator(".empty")).to_have_text("No data")

    def step_14_why_not(self):
        """Three clicks from the start page to the reason why a user did not get a push."""
        page = self.page
        def noted():
            self.at(DEMO, "overview")
            page.get_by_label("Why did a user not get a push?").fill("console-nobody")
            self.for_document("why-1-ask.png")
            page.get_by_role("button", name="Look").click()
            return self.row("UCHAT").count() == 1
        self.eventually("the push is listed", noted, 40)
        expect(self.row("UCHAT")).to_contain_text("No")
        self.for_document("why-2-choose.png")
        page.get_by_role("link", name="Why not?").click()
        expect(page.locator(".reason")).to_contain_text("has ever connected")
        self.for_document("why-3-read.png")
        # The trace of the push that arrived has every step.
        self.go(f"/instances/{DEMO}/data?by=user&id=console-u1")
        page.get_by_role("link", name="Trace it: UCHAT").click()
        expect(page.locator(".reason.good")).to_contain_text("The app has confirmed it")
        expect(page.locator(".timeline li")).to_have_count(4)
        expect(page.locator(".timeline li").nth(2)).to_have_text("Stored on the device")
        page.get_by_role("link", name="Data query: console-u1").click()
        expect(page).to_have_url(re.compile(r"/data\?by=user&id=console-u1$"))

    def step_145_global_of_a_user(self):
        """C7, H7: a global push in a user's list links to that user's devices, and back to the list."""
        page = self.page
        status, made = self.api("POST", f"/api/v1/instances/{DEMO}/configurations", {
            "bizType": "BROWSER-ALL", "description": "To all", "scope": "global", "immediate": True})
        assert status == 201, made
        status, sent = self.api("POST", f"/api/v1/instances/{DEMO}/pushes", {
            "bizType": "BROWSER-ALL", "thirdMsgId": "browser-all", "payload": "to all of the demo"})
        assert status == 201, sent
        def listed():
            self.go(f"/instances/{DEMO}/data?by=user&id=console-u1")
            return self.row("BROWSER-ALL").filter(has_text="Global").count() == 1
        self.eventually("the global push is listed", listed, 40)
        self.row("BROWSER-ALL").locator("a").first.click()
        expect(page.locator("section.card h2 a")).to_have_text(self.device_id)
        expect(page.locator(".timeline li").first).to_contain_text("Accepted")
        self.picture(page, "trace-global-light-en.png")
        page.get_by_role("link", name="Data query: console-u1").click()
        expect(page).to_have_url(re.compile(r"/data\?by=user&id=console-u1$"))
        one = f"/api/v1/instances/{DEMO}/configurations/BROWSER-ALL"
        assert self.api("POST", one + "/offline")[0] == 200 and self.api("DELETE", one)[0] == 200

    def for_document(self, name):
        """Takes a picture for the console's README: the part of the window that has content."""
        self.page.set_viewport_size({"width": 1200, "height": 640})
        self.page.mouse.move(0, 0)
        self.picture(self.page, name, whole=False)
        self.page.set_viewport_size({"width": 1280, "height": 900})

    def step_15_recall(self):
        """H7: the trace of a recalled push says that it was recalled."""
        page = self.page
        self.go(f"/instances/{DEMO}/trace?bizType=UCHAT&linkToken=console-nobody&thirdMsgId=browser-2")
        page.get_by_role("button", name="Recall").click()
        self.yes()
        self.done()
        expect(page.locator(".reason")).to_contain_text("was recalled")

    def step_16_device(self):
        """C1: one device: its connection and sync points; disconnected, it reconnects."""
        page = self.page
        self.go(f"/instances/{DEMO}/devices?user=console-u1")
        since = self.row("console-u1").locator("time").get_attribute("data-local")
        self.row("console-u1").locator("a").first.click()
        expect(self.row("UCHAT")).to_contain_text("Up to date")
        self.picture(page, "device-light-en.png")
        page.get_by_role("button", name="Disconnect").click()
        self.yes()
        self.done()
        def back():
            self.go(f"/instances/{DEMO}/devices?user=console-u1")
            row = self.row("console-u1")
            return row.count() == 1 and row.locator("time").get_attribute("data-local") != since
        self.eventually("the device is back", back, 40)
        page.get_by_label("User id").fill("nobody-at-all")
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".empty")).to_have_text("No connected device here.")
        self.go(f"/instances/{DEMO}/dead-letters")
        expect(page.locator("h1")).to_have_text("Dead letters")

    # ---- operations and logs of devices -----------------------------------------------------------------------------

    def step_171_operations(self):
        """Two-way: operations of devices by state, a row for each day; a dead operation is executed by a retry."""
        page, other = self.page, self.context.new_page()
        work = self.options.work
        self.at(work, "data")
        page.get_by_role("link", name="Device operations").click()
        expect(page.locator("h1")).to_have_text("Device operations")
        days = page.locator("table").first.locator("tbody tr")
        expect(days).to_have_count(1)
        expect(days.locator("td").first).to_have_text(re.compile(r"^20\d\d-\d\d-\d\d$"))
        assert days.locator("td").all_inner_texts()[1:5] == ["ORDER", "1", "1", "3"], days.inner_text()
        expect(page.locator("[data-results] tbody tr")).to_have_count(5)
        page.get_by_label("State").select_option("given up")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("#notice")).to_have_text("Found: 3")
        expect(self.row("work-1")).to_contain_text("console-op")
        self.go(f"/instances/{work}/operations?state=dead", other)
        page.get_by_role("button", name="Try once more: work-1").click()
        self.done()
        def accepted():
            self.go(f"/instances/{work}/operations?state=accepted")
            return self.row("work-1").count() == 1
        self.eventually("it is done", accepted)
        expect(self.row("work-1").get_by_role("button")).to_have_count(0)
        assert days.locator("td").all_inner_texts()[1:5] == ["ORDER", "2", "1", "3"], days.inner_text()
        # A page that still shows the operation as dead.
        other.get_by_role("button", name="Try once more: work-1").click()
        self.fault("There is no operation work-1 that was given up", other)
        other.close()

    def step_172_diagnosis(self):
        """Two-way: a log is requested from a device, again, and downloaded; another request is deleted."""
        page = self.page
        self.at(self.options.work, "devices")
        page.get_by_role("link", name="Diagnosis logs").click()
        expect(page.locator("h1")).to_have_text("Diagnosis logs")
        expect(page.locator(".empty")).to_have_text("No device was asked for its log.")
        def ask(device, description, hours):
            page.locator("summary", has_text="Ask a device for its log").click()
            page.get_by_label("Device id").fill(device)
            page.get_by_label("Purpose").fill(description)
            for name, hour in [("from", -1), ("to", hours)]:
                moment = time.strftime("%Y-%m-%dT%H:%M", time.localtime(time.time() + 3600 * hour))
                page.locator(f"[data-moment={name}]").fill(moment)
            page.locator("[name=network]").select_option("any")
            page.get_by_role("button", name="Ask a device for its log").click()
        ask("console-log", "it hangs", -2)
        self.fault("It has to be after the beginning")
        page.reload()
        ask("console-log", "it <i class=evil>hangs</i>", 1)
        self.done()
        expect(self.row("console-log")).to_contain_text("it <i class=evil>hangs</i>")
        self.download_log(1)
        self.row("console-log").get_by_role("button", name="Restart").click()
        self.yes()
        self.done()
        self.download_log(2)
        ask("console-away", "it is away", 1)
        self.done()
        row = self.row("console-away")
        expect(row).to_contain_text("requested")
        row.get_by_role("button", name="Delete").click()
        self.yes()
        self.done()
        expect(self.row("console-away")).to_have_count(0)

    def download_log(self, run):
        """Waits for the complete log of a run, and downloads it."""
        page = self.page
        def whole():
            page.reload()
            return self.row("console-log").get_by_role("link", name="Download").count() == 1
        self.eventually("the log is there", whole, 60)
        expect(self.row("console-log").locator(".badge")).to_have_text("complete")
        with page.expect_download() as download:
            self.row("console-log").get_by_role("link", name="Download").click()
        assert download.value.suggested_filename.endswith(f"-{run}.log"), download.value.suggested_filename
        assert "well, here it is" in pathlib.Path(download.value.path()).read_text()

    # ---- service management -----------------------------------------------------------------------------------------

    def step_17_signature(self):
        """C8: signature verification on and off, each with a confirmation, and in force."""
        page = self.page
        self.at(INSTANCE, "service")
        card = page.locator("section.card").first
        expect(card.locator(".badge")).to_have_text("Off")
        page.locator("#signature-switch").click()
        assert self.unsigned(INSTANCE) == 200
        self.yes()
        self.done()
        expect(card.locator(".badge")).to_have_text("On")
        self.eventually("unsigned calls are refused", lambda: self.unsigned(INSTANCE) == 401, 5)
        page.locator("#signature-switch").click()
        self.yes()
        self.enter_password_if_asked()
        self.done()
        expect(card.locator(".badge")).to_have_text("Off")
        self.eventually("unsigned calls are taken", lambda: self.unsigned(INSTANCE) == 200, 5)
        # The link to the accounts, which this user may see.
        page.locator("section.card").get_by_role("link", name="Accounts").click()
        expect(page.locator("h1")).to_have_text("Accounts")

    def step_18_keys(self):
        """C8: a key is shown once, at most two of a purpose, and it is revoked with the password."""
        page = self.page
        self.at(INSTANCE, "service")
        self.age_sessions()
        for number in range(3):
            page.get_by_text("New key", exact=True).click()
            page.locator("form:has([name=purpose])").get_by_role("button", name="Create").click()
            if number == 0:
                self.enter_password()
            if number == 2:
                self.fault("Refused")
                break
            shown = page.locator("#new-key")
            expect(shown).to_be_visible()
            secret = shown.locator("[data-member=secret]").inner_text()
            assert len(base64.b64decode(secret)) == 32, secret
            key = shown.locator("[data-member=id]").inner_text()
            shown.get_by_role("link", name="I have noted it").click()
            expect(self.row(key)).to_contain_text("Backend calls")
            assert secret not in page.content(), "shown once"
        self.at(INSTANCE, "service")
        self.row(key).get_by_role("button", name="Revoke").click()
        self.age_sessions()
        self.yes()
        expect(page.locator("#password-what")).to_have_text(f"Revoke {key}")
        self.enter_password()
        self.done()
        expect(self.row(key)).to_have_count(0)

    def step_19_validator(self):
        """C8: the session check's settings, a wrong address, and "test it" against the tenant."""
        page = self.page
        self.at(INSTANCE, "service")
        form = page.locator("form:has([name=validatorUrl])")
        form.locator("[name=validatorUrl]").fill("ftp://tenant.example/")
        form.get_by_role("button", name="Save").click()
        self.fault("begins with https:// or http://")
        form.locator("[name=validatorUrl]").fill("https://tenant.example/validate")
        form.locator("[name=validatorMode]").select_option("mgs")
        expect(form.locator("[name=gatewayAppId]")).to_be_visible()
        form.locator("[name=gatewayAppId]").fill("app")
        form.locator("[name=gatewayWorkspaceId]").fill("space")
        form.get_by_role("button", name="Save").click()
        self.done()
        expect(page.locator("[name=gatewayAppId]")).to_have_value("app")
        self.at(DEMO, "service")
        page.get_by_text("Test it", exact=True).click()
        check = page.locator("form:has([name=sessionId])")
        check.locator("[name=userId]").fill("u1")
        check.locator("[name=sessionId]").fill("s1")
        check.get_by_role("button", name="Ask now").click()
        expect(page.locator("#verdict")).to_contain_text("Valid")

    def step_20_meta_config(self):
        """C12: a ready meta.config of the chosen instance."""
        page = self.page
        self.at(INSTANCE, "service")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download", exact=True).click()
        config = json.loads(pathlib.Path(download.value.path()).read_text())
        assert config["instanceId"] == INSTANCE and config["workspaceId"] == "space" and config["syncport"], config

    def step_21_accounts(self):
        """C8: an account is invited, has exactly the rights of its role, and is removed."""
        page = self.page
        self.go("/accounts")
        # The preselection has the fewest rights: a viewer of the current instance.
        expect(page.locator("[data-role-instance]")).to_have_value(INSTANCE)
        expect(page.locator("[data-role]")).to_have_value("viewer")
        page.locator("[name=name]").fill("v iewer")
        page.get_by_role("button", name="Invite").click()
        self.stays("/accounts")
        page.locator("[name=name]").fill("viewer")
        self.context.clear_cookies(name="mss-instance")
        self.go("/me")
        self.go("/accounts")
        expect(page.locator("[data-role-instance]")).to_have_value("")
        page.locator("[name=name]").fill("viewer")
        page.get_by_role("button", name="Invite").click()
        expect(page.locator("select:invalid")).to_have_count(1)
        page.locator("[data-role-instance]").select_option(INSTANCE)
        self.age_sessions()
        page.get_by_role("button", name="Invite").click()
        self.enter_password()
        address = page.locator("#invitation [data-member=invitation]")
        expect(address).to_contain_text("/choose-password#")
        context = self.new_context()
        viewer = context.new_page()
        viewer.goto(address.inner_text())
        viewer.locator("input[type=password]").nth(0).fill(PASSWORD)
        viewer.locator("input[type=password]").nth(1).fill(PASSWORD)
        viewer.get_by_role("button", name="Continue").click()
        expect(viewer).to_have_url(self.base + "/sign-in")
        self.sign_in("viewer", page=viewer)
        expect(viewer.locator("nav.tabs")).to_be_visible()
        self.go(f"/instances/{INSTANCE}/configurations", viewer)
        expect(viewer.get_by_role("link", name="Add")).to_have_count(0)
        expect(self.row("ORDER-NOTE", viewer).get_by_role("button")).to_have_count(0)
        assert viewer.goto(f"{self.base}/instances/{DEMO}/data").status == 403
        expect(viewer.locator(".lead")).to_contain_text("may not do this")
        assert viewer.goto(self.base + "/accounts").status == 403
        # The role is raised, with effect at once.
        self.go("/accounts/viewer")
        page.locator(f"[data-role-of={INSTANCE}]").select_option("operator")
        page.get_by_role("button", name="Save").click()
        self.done()
        self.go(f"/instances/{INSTANCE}/configurations", viewer)
        expect(viewer.get_by_role("link", name="Add")).to_have_count(1)
        # A user cannot remove their own rights.
        self.go("/accounts/root")
        page.locator("[data-role-of='']").select_option("viewer")
        page.get_by_role("button", name="Save").click()
        self.fault("cannot remove your own rights")
        self.go("/accounts/viewer")
        page.get_by_role("link", name="Operation records").click()
        expect(page.get_by_label("Operator")).to_have_value("console:viewer")
        expect(self.row("Sign in").first).to_be_visible()
        self.go("/accounts/viewer")
        page.get_by_role("button", name="Remove the account").click()
        self.yes()
        self.done()
        viewer.goto(f"{self.base}/instances/{INSTANCE}/configurations")
        expect(viewer).to_have_url(re.compile("/sign-in"))
        context.close()

    def step_22_second_factor(self):
        """SEC14: with a second factor a sign-in requires a code, each code once."""
        page = self.page
        self.go("/me")
        card = page.locator("section.card").nth(2)
        self.age_sessions()
        card.get_by_role("button", name="Switch on").click()
        self.enter_password()
        expect(page.locator("[data-member=text]")).to_have_text(re.compile("^[A-Z2-7]{32}$"))
        secret = page.locator("[data-member=text]").inner_text()
        page.locator("form:has([name=secret]) [name=code]").fill("000000")
        page.locator("form:has([name=secret])").get_by_role("button", name="Continue").click()
        self.fault("does not match the secret")
        codes = TimeCodes(secret)
        page.locator("form:has([name=secret]) [name=code]").fill(codes.next(page))
        page.locator("form:has([name=secret])").get_by_role("button", name="Continue").click()
        self.done()
        context = self.new_context()
        other = context.new_page()
        self.sign_in("root", page=other)
        self.fault("enter the code", other)
        # The code that confirmed the secret is used up.
        code = codes.next(other)
        self.sign_in("root", code=code, page=other)
        expect(other.locator("nav.instance")).to_be_visible()
        second = context.new_page()
        context.clear_cookies()
        self.sign_in("root", code=code, page=second)
        self.fault("are wrong", second)
        context.close()
        # The removal requires an unused code.
        self.go("/me")
        form = page.locator("form[data-action$=remove]")
        form.locator("[name=code]").fill(code)
        page.get_by_role("button", name="Switch off").click()
        self.yes()
        self.fault("does not match the secret")
        form.locator("[name=code]").fill(codes.next(page))
        page.get_by_role("button", name="Switch off").click()
        self.yes()
        self.done()

    # ---- records, API, mistakes -------------------------------------------------------------------------------------

    def step_23_records(self):
        """C9: audit records with filters and details; changes are marked, and the payload of a push is shown."""
        page = self.page
        self.at(INSTANCE, "records")
        expect(page.locator("main")).to_contain_text("The last 7 days")
        first = page.locator("tbody time").first
        assert re.search(r"\d\d:\d\d:\d\d", first.inner_text()), first.inner_text()
        page.get_by_label("Action").select_option("modify-configuration")
        page.get_by_role("button", name="Search").click()
        expect(self.row("ORDER-NOTE")).to_have_count(2)
        expect(self.row("console:root")).to_have_count(2)
        self.row("ORDER-NOTE").nth(1).get_by_role("link", name="Details").click()
        expect(page.locator(".changed")).to_have_count(2)
        expect(page.locator(".changed").first).to_have_text("Notes on every order")
        expect(page.locator(".was").first).to_have_text("Notes on orders")
        expect(page.locator("section.card h2")).to_have_text(
            ["Record", "Basic", "Target", "Persistence", "Security"])
        assert not re.search(r"\b(true|false|null)\b", page.locator("main").inner_text())
        self.picture(page, "record-modified-light-en.png")
        for action in ["create-configuration", "delete-configuration", "publish", "disable", "create-sync",
                       "enable-signature", "disable-signature", "create-instance", "create-key", "revoke-key"]:
            self.go(f"/instances/{INSTANCE}/records?action={action}")
            expect(page.locator("tbody tr").first).to_be_visible()
        self.go(f"/instances/{DEMO}/records?action=create-sync")
        self.row("UCHAT").last.get_by_role("link", name="Details").click()
        expect(page.locator("main")).to_contain_text("browser-1")
        for name, value in [("Target id", "console-u1"), ("System", "every system"), ("Version from", "no limit")]:
            expect(page.locator(f"dt:has-text('{name}') + dd").first).to_have_text(value)
        expect(page.locator("dt:has-text('Valid until') + dd time")).to_have_attribute(
            "data-local", re.compile(r"^\d{13}$"))
        self.picture(page, "record-light-en.png")
        expect(page.locator("pre")).to_have_text("hello from the console <b>&amp;</b>")
        page.get_by_role("link", name="Trace it").click()
        expect(page.locator(".reason.good")).to_be_visible()
        self.at(INSTANCE, "records")
        page.get_by_label("Operator").fill("ROO")
        page.get_by_role("button", name="Search").click()
        expect(self.row("console:root").first).to_be_visible()
        page.get_by_label("Operator").fill("console:nobody")
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".empty")).to_have_text("No records here.")
        page.get_by_role("link", name="Clear").click()
        expect(page.locator("tbody tr").first).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("link", name="Export").click()
        lines = [json.loads(line) for line in pathlib.Path(download.value.path()).read_text().splitlines()]
        assert [one["number"] for one in lines] == sorted(one["number"] for one in lines) and len(lines) > 10
        # Records of accounts belong to no instance: the link leads to all records.
        self.at(INSTANCE, "records")
        page.get_by_role("link", name="All operation records").click()
        page.get_by_label("Action").select_option("create-user")
        page.get_by_role("button", name="Search").click()
        self.row("viewer").get_by_role("link", name="Details").click()
        expect(page.locator("dt:has-text('Roles') + dd")).to_have_text(f"{INSTANCE}: Viewer")

    def step_235_zone(self):
        """C9: times are in the browser's zone, which is named; entered times are in that zone too."""
        context = self.new_context(timezone_id="Asia/Shanghai", storage_state=self.context.storage_state())
        page = context.new_page()
        self.go(f"/instances/{INSTANCE}/records?action=create-instance", page)
        shown = page.locator("tbody time").first
        at = int(shown.get_attribute("data-local")) / 1000
        there = time.strftime("%Y-%m-%d %H:%M:%S GMT+8", time.gmtime(at + 8 * 3600))
        expect(shown).to_have_text(there)
        page.get_by_label("From").fill(time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at + 8 * 3600 - 60)))
        page.get_by_label("To", exact=True).fill(time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at + 8 * 3600 + 60)))
        page.get_by_role("button", name="Search").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_label("To", exact=True).fill(time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at + 8 * 3600 - 60)))
        page.get_by_role("button", name="Search").click()
        expect(page.locator(".empty")).to_be_visible()
        self.go(f"/instances/{INSTANCE}/overview", page)
        axis = page.locator("text[data-axis]").first
        at = int(axis.get_attribute("data-axis")) / 1000
        expect(axis).to_have_text(time.strftime("%H:%M", time.gmtime(at + 8 * 3600)))
        context.close()

    def step_24_api(self):
        """C11: the described API covers the whole console; a program signs in and gets the same data."""
        page = self.page
        self.go("/api")
        assert page.locator("details.card").count() > 50
        document = page.evaluate("fetch('/openapi.json').then((answer) => answer.json())")
        def call(method, path, body=None, token=None):
            headers = {"Content-Type": "application/json"}
            if token:
                headers["Authorization"] = f"Bearer {token}"
            request = urllib.request.Request(
                self.base + path, json.dumps(body).encode() if body else None, headers, method=method)
            try:
                with urllib.request.urlopen(request) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as refusal:
                return refusal.code, json.load(refusal)
        status, session = call("POST", "/api/v1/session", {"name": "root", "password": PASSWORD})
        assert status == 200, session
        token = session["token"]
        status, found = call("GET", f"/api/v1/instances/{INSTANCE}/configurations", token=token)
        assert status == 200 and [one["bizType"] for one in found["configurations"]] == ["NEWS", "ORDER-NOTE"], found
        for path in ["/instances", f"/instances/{INSTANCE}", f"/instances/{DEMO}/overview", "/session", "/accounts",
                     f"/instances/{DEMO}/data?by=user&id=console-u1", f"/instances/{DEMO}/devices",
                     f"/instances/{DEMO}/device?device={self.device_id}", "/records", "/records/1",
                     f"/instances/{DEMO}/trace?bizType=UCHAT&linkToken=console-u1&thirdMsgId=browser-1",
                     f"/instances/{DEMO}/configurations/UCHAT", f"/instances/{DEMO}/dead-letters",
                     f"/instances/{self.options.work}/operations", f"/instances/{self.options.work}/diagnosis"]:
            status, found = call("GET", "/api/v1" + path, token=token)
            assert status == 200, (path, found)
            self.fits(found, self.schema(document, path.split("?")[0]), path)
        # A dead operation is executed by a retry; after that, a second retry is refused.
        retry = f"/api/v1/instances/{self.options.work}/operations/retry"
        again = {"deviceId": "console-op", "operationId": "work-2"}
        assert call("POST", retry, again, token)[0] == 200
        def accepted():
            listed = call("GET", f"/api/v1/instances/{self.options.work}/operations?state=accepted", token=token)[1]
            return "work-2" in [one["operationId"] for one in listed["operations"]]
        self.eventually("it is done", accepted)
        status, refusal = call("POST", retry, again, token)
        assert status == 404 and "work-2" in refusal["detail"], refusal
        status, refusal = call("POST", f"/api/v1/instances/{INSTANCE}/configurations", {"bizType": "X"}, token)
        assert status == 422 and refusal["field"] == "description" and refusal["requestId"], refusal
        assert call("GET", "/api/v1/instances")[0] == 401
        assert call("DELETE", "/api/v1/session", token=token)[0] == 200
        assert call("GET", "/api/v1/instances", token=token)[0] == 401

    def schema(self, document, path):
        """Returns the schema of the response to GET of a path, from the description."""
        given = ("/api/v1" + path).split("/")
        for pattern, calls in document["paths"].items():
            parts = pattern.split("/")
            if "get" in calls and len(parts) == len(given) and all(
                    part == have or part.startswith("{") for part, have in zip(parts, given)):
                return calls["get"]["responses"]["2XX"]["content"]["application/json"]["schema"]
        raise AssertionError(f"{path} is not described")

    def fits(self, value, schema, where):
        """Checks a response by its schema: types, required members, and no other members."""
        types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
        assert isinstance(value, types[schema["type"]]), (where, value, schema["type"])
        if schema["type"] == "array":
            for one in value:
                self.fits(one, schema["items"], where + "[]")
        elif schema["type"] == "object" and "properties" in schema:
            assert set(schema.get("required", [])) <= set(value) <= set(schema["properties"]), (where, value.keys())
            for name, one in value.items():
                self.fits(one, schema["properties"][name], f"{where}.{name}")

    def step_245_languages(self):
        """C1: every refusal is in the reader's language, from any process, and so is the description of the API."""
        context = self.new_context(storage_state=self.context.storage_state())
        page = context.new_page()
        self.go("/me", page)
        self.api("PUT", "/api/v1/me/language", {"language": "zh"}, page)
        base = f"/api/v1/instances/{DEMO}"
        push = {"bizType": "UCHAT", "linkToken": "u", "thirdMsgId": "zh-1", "payload": "x", "dryRun": True}
        for path, body in [
                (f"{base}/configurations", {"bizType": "a b", "description": "d"}),
                (f"{base}/configurations", {"bizType": "B", "description": "d", "threshold": 0}),
                (f"{base}/pushes", {**push, "appMinVersion": "x"}),
                (f"{base}/pushes", {**push, "appMinVersion": "2", "appMaxVersion": "1"}),
                (f"{base}/pushes", {**push, "linkToken": ""}), (f"{base}/pushes", {**push, "linkToken": "u" * 101}),
                (f"{base}/pushes", {**push, "thirdMsgId": "m" * 101}),
                (f"{base}/pushes", {**push, "payload": "p" * 4097}),
                (f"{base}/devices/release", {"deviceId": "never-there"}),
                (f"{base}/operations/retry", {"deviceId": "never-there", "operationId": "1"}),
                (f"{base}/diagnosis", {"deviceId": "never-there", "from": 2, "to": 1}),
                ("/api/v1/instances", {"instanceId": "i" * 101})]:
            status, refusal = self.api("POST", path, body, page)
            assert status in (404, 409, 422), (path, refusal)
            rest = re.sub(r"thirdMsgId|linkToken|appM..Version|bizType|Sync ID|GMT|ID|[A-Z]\b", "", refusal["detail"])
            assert re.search("[\u4e00-\u9fff]", rest) and not re.search("[a-z]{3} [a-z]{2}", rest), refusal
        self.go("/api", page)
        summaries = page.locator("details.card summary .quiet").all_inner_texts()
        assert all(re.search("[\u4e00-\u9fff]", text) for text in summaries), summaries
        self.api("PUT", "/api/v1/me/language", {"language": "en"}, page)
        context.close()

    def step_25_lost_session(self):
        """A session that ends while a form is open: the page says so, and the input stays."""
        page = self.page
        self.go(f"/instances/{INSTANCE}/configurations/ORDER-NOTE?edit=1")
        page.locator("[name=description]").fill("typed before the session ended")
        other = self.context.new_page()
        self.go("/", other)
        other.locator("details.right summary").click()
        other.get_by_role("button", name="Sign out").click()
        expect(other).to_have_url(self.base + "/sign-in")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#lost")).to_contain_text("your input stays here")
        page.locator("#lost").get_by_role("button", name="Stay here").click()
        expect(page.locator("[name=description]")).to_have_value("typed before the session ended")
        self.sign_in("root", page=other)
        expect(other.locator("nav.instance")).to_be_visible()
        other.close()
        page.get_by_role("button", name="Save").click()
        self.done()
        expect(self.row("ORDER-NOTE")).to_contain_text("typed before the session ended")

    def step_26_mistyped(self):
        """Unknown addresses show an explanation with a link back."""
        page = self.page
        for path, status in [("/nowhere", 404), (f"/instances/{INSTANCE}/configurations/GONE", 404),
                             ("/instances/none_at_all/overview", 404), (f"/instances/{INSTANCE}/records/0", 404),
                             (f"/instances/{DEMO}/trace?bizType=UCHAT&linkToken=x&thirdMsgId=none", 404)]:
            assert page.goto(self.base + path).status == status, path
            expect(page.get_by_role("link", name="To the start page")).to_be_visible()

    def step_265_injection(self):
        """SEC13: names of users and devices are shown unchanged, and are never parsed as HTML."""
        page = self.page
        self.go("/me")
        for number, before in enumerate(["", "\u0600", "\u200d"]):
            evil = f'{before}<i class=evil>{before}"{before}>{before}\'\u0301</i>'
            status = page.evaluate(
                """async ([path, body]) => (await fetch(path, {method: 'POST', headers: {
                'Content-Type': 'application/json',
                'X-MSS-Form-Token': document.querySelector('meta[name=form-token]').content},
                body: JSON.stringify(body)})).status""",
                [f"/api/v1/instances/{INSTANCE}/configurations", {"bizType": f"EVIL-{number}", "description": evil}])
            assert status == 201, status
        for path in ["configurations", "configurations/EVIL-1", "configurations/EVIL-1?edit=1", "records",
                     "data?by=user&id=%D8%80%3Ci%20class%3Devil%3E", "devices?user=%D8%80%22%3E%3Ci%20class%3Devil%3E"]:
            self.go(f"/instances/{INSTANCE}/{path}")
            assert page.locator(".evil").count() == 0, path
        context = self.new_context()
        stranger = context.new_page()
        for next_path in ["%D8%80%22%3E%3Ci%20class%3Devil%3E", "/%D8%80%22%3E%3Ci%20class%3Devil%3E",
                          "/%09/evil.example", "//evil.example", "/%5Cevil.example", "//%CC%81@evil.example"]:
            stranger.goto(f"{self.base}/sign-in?next={next_path}")
            assert stranger.locator(".evil").count() == 0
            assert stranger.locator("main form").get_attribute("data-next") == "/", next_path
        context.close()

    # ---- appearance -------------------------------------------------------------------------------------------------

    def pages(self):
        at = f"/instances/{DEMO}"
        return {
            "overview": at + "/overview?range=hour", "configurations": at + "/configurations",
            "configuration": at + "/configurations/UCHAT", "modify": at + "/configurations/UCHAT?edit=1",
            "new": at + "/new-configuration", "operate": at + "/configurations/UCHAT/operate",
            "data": at + "/data?by=user&id=console-u1",
            "trace": at + "/trace?bizType=UCHAT&linkToken=console-u1&thirdMsgId=browser-1",
            "devices": at + "/devices", "service": at + "/service",
            "records": f"/instances/{INSTANCE}/records", "instances": "/instances", "accounts": "/accounts",
            "account": "/accounts/root", "record": f"/instances/{INSTANCE}/records/{self.record}",
            "device": f"{at}/device?device={self.device_id}", "sign-in": "/sign-in", "setup": "/setup", "me": "/me",
            "dead-letters": at + "/dead-letters", "api": "/api",
            "operations": f"/instances/{self.options.work}/operations",
            "diagnosis": f"/instances/{self.options.work}/diagnosis",
            "rollouts": f"/instances/{INSTANCE}/rollouts",
            "rollout": f"/instances/{INSTANCE}/rollout?bizType=NEWS&thirdMsgId=browser-stages",
            "operate-global": f"/instances/{INSTANCE}/configurations/NEWS/operate",
        }

    LOOKS = {
        "light-en": ({}, "en", "light"), "dark-en": ({"color_scheme": "dark"}, "en", "dark"),
        "light-zh": ({}, "zh", "light"),
        "phone-zh-dark": ({"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}, "zh", "dark"),
        "phone-en": ({"viewport": {"width": 390, "height": 844}}, "en", "light"),
    }

    def step_27_looks(self):
        """C1: every page in light and dark, English and Chinese, and at a phone's width; labelled, and not too wide."""
        self.record = self.api("GET", f"/api/v1/instances/{INSTANCE}/records?action=modify-configuration")[
            1]["records"][-1]["number"]
        for look, (settings, language, _) in self.LOOKS.items():
            context = self.browser.new_context(
                storage_state=self.context.storage_state(), ignore_https_errors=True, locale="en-GB",
                **{"viewport": {"width": 1280, "height": 900}, **settings})
            page = context.new_page()
            self.go("/me", page)
            self.page.request  # the session is the same: the language is set through the page
            page.evaluate(
                """async (language) => { await fetch('/api/v1/me/language', {method: 'PUT', headers: {
                'Content-Type': 'application/json',
                'X-MSS-Form-Token': document.querySelector('meta[name=form-token]').content},
                body: JSON.stringify({language})}) }""", language)
            for name, path in self.pages().items():
                self.go(path, page)
                assert page.locator("html").get_attribute("lang") == language
                if "viewport" in settings:
                    self.check_phone(page, f"{name} {look}")
                if language == "zh" and name in ("configurations", "data"):
                    expect(page.locator("h1")).to_have_text({"configurations": "配置管理", "data": "数据查询"}[name])
                self.check_accessible(page, f"{name} {look}")
                self.picture(page, f"{name}-{look}.png")
            context.close()

    def check_phone(self, page, where):
        """Checks a page at a phone's width: a table row is a block with column names, and text is large enough."""
        found = page.evaluate("""() => ({
          unnamed: [...document.querySelectorAll('table.stacked tbody td:not([colspan])')]
            .filter((e) => e.checkVisibility() && !e.dataset.label).map((e) => e.outerHTML.slice(0, 200)),
          tab: [...document.querySelectorAll('.tabs [aria-current]')].filter((e) => {
            const place = e.getBoundingClientRect(); return place.left < 0 || place.right > innerWidth; }).length,
          heads: [...document.querySelectorAll('thead')].filter((e) => e.checkVisibility()).length,
          axis: [...document.querySelectorAll('.chart text')].filter((e) => e.checkVisibility())
            .map((e) => e.getBoundingClientRect().height).filter((height) => height < 10),
          filters: new Set([...document.querySelectorAll('.filter label')].map((e) => e.getBoundingClientRect().left
            + ' ' + e.getBoundingClientRect().width)).size,
        })""")
        assert not found["unnamed"] and not found["heads"] and not found["tab"], (where, found)
        assert not found["axis"] and found["filters"] <= 1, (where, found)

    def check_accessible(self, page, where):
        found = page.evaluate("""() => {
          const named = (e) => e.labels?.length || e.getAttribute('aria-label') || e.getAttribute('title')
            || e.textContent.trim() || e.getAttribute('placeholder');
          const shown = (e) => e.checkVisibility();
          return {
            unlabelled: [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
              .filter((e) => shown(e) && !(e.labels?.length || e.getAttribute('aria-label'))).map((e) => e.outerHTML),
            unnamed: [...document.querySelectorAll('button, a[href], summary')]
              .filter((e) => shown(e) && !named(e)).map((e) => e.outerHTML),
            headings: document.querySelectorAll('h1').length,
            wide: document.documentElement.scrollWidth - innerWidth,
            cut: [...document.querySelectorAll('.scroll')].filter((e) => shown(e) && e.scrollWidth > e.clientWidth + 1)
              .map((e) => e.outerHTML.slice(0, 200)),
            raw: /\\{\\{|undefined|\\[object|NaN/.test(document.body.innerText),
          };
        }""")
        assert not found["unlabelled"] and not found["unnamed"] and found["headings"] == 1, (where, found)
        assert found["wide"] <= 0, f"{where} is {found['wide']} too wide"
        assert not found["cut"], (where, found["cut"])
        assert not found["raw"], f"{where} shows a placeholder"

    def step_28_keyboard(self):
        """The console works without a mouse: past the bar, into a dialog and out of it."""
        page = self.page
        self.at(INSTANCE, "configurations")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        button = self.row("NEWS").get_by_role("button", name="Offline")
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#ask")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#ask")).to_be_hidden()
        expect(self.row("NEWS").locator(".badge")).to_have_text("Online")
        page.locator("nav.instance summary").focus()
        page.keyboard.press("Enter")
        expect(page.locator("nav.instance .sheet")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("nav.instance .sheet")).to_be_hidden()

    def step_29_alone(self):
        """No page sends a request to another host, and the browser reported no violation."""
        ours = {self.base.split("/")[2], self.options.gateway.split("/")[2]}
        assert self.hosts <= ours, self.hosts - ours
        assert not self.complaints, self.complaints

    def run(self):
        steps = sorted(name for name in dir(self) if name.startswith("step_"))
        failed = 0
        for name in steps:
            step = getattr(self, name)
            start = time.monotonic()
            try:
                step()
                print(f"ok   {name}: {step.__doc__} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception:
                failed += 1
                self.picture(self.page, f"failed-{name}.png")
                print(f"FAIL {name}: {step.__doc__}\n{traceback.format_exc()}\n  at {self.page.url}", flush=True)
                if name < "step_04":
                    break
        print(f"{len(steps) - failed} passed, {failed} failed")
        return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["console", "invitation", "api", "gateway", "database", "work"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--pictures")
    parser.add_argument("--chromium", default="/usr/bin/chromium-headless-shell")
    options = parser.parse_args()
    # The machine can be busy with other tests.
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        failed = Suite(options, browser).run()
        browser.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
