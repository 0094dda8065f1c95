"""A person at the console, for measurements: uses an invitation, signs in, asks for pages, changes things."""

import http.client
import json
import re
import time
import urllib.parse


class Console:
    """One session. Not for several threads at once."""

    PASSWORD = "a long enough passphrase"

    def __init__(self, invitation, name="bench-admin"):
        """The invitation is an address of `mssctl console invite`."""
        address = urllib.parse.urlsplit(invitation)
        self.host, self.origin = address.netloc, f"{address.scheme}://{address.netloc}"
        self.name, self.cookie, self.token = name, "", ""
        self.connection = http.client.HTTPConnection(self.host, timeout=60)
        made, answer = self.call(
            "POST", "/api/v1/invitations", {"token": address.fragment, "name": name, "password": self.PASSWORD})
        if made >= 300:
            raise SystemExit(f"the invitation was not taken: {made} {answer}")
        if not self.cookie:
            self.call("POST", "/api/v1/session", {"name": name, "password": self.PASSWORD})
        page = self.page("/me")[1]
        self.token = re.search(r'name="form-token" content="([^"]+)"', page).group(1)

    def ask(self, method, path, body=None, headers=None):
        """Status, body as text, and milliseconds from the first byte sent to the last one read."""
        headers = {"Cookie": self.cookie, **(headers or {})}
        begin = time.perf_counter()
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        text = response.read().decode()
        taken = (time.perf_counter() - begin) * 1e3
        if cookie := response.getheader("Set-Cookie"):
            self.cookie = cookie.split(";")[0]
        return response.status, text, taken

    def page(self, path):
        return self.ask("GET", path)

    def call(self, method, path, members=None):
        headers = {"Content-Type": "application/json", "Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        if self.token:
            headers["X-MSS-Form-Token"] = self.token
        status, text, _ = self.ask(method, path, json.dumps(members or {}), headers)
        try:
            return status, json.loads(text) if text else None
        except ValueError:
            return status, text

    def confirm(self):
        """What is hard to undo asks for the password again; good for five minutes."""
        return self.call("POST", "/api/v1/session/confirm", {"password": self.PASSWORD})
