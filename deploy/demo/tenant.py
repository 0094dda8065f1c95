#!/usr/bin/env python3
"""A tenant for the demo. Its session endpoint: every session is valid but those that start with "bad".

POST /control {"sessionId": "s", "valid": false} makes it say otherwise of a session from then on.
POST /operations takes operations of devices: it does each id once, and refuses those that are named "refuse".

Under /mgw.htm it answers as an mPaaS mobile gateway in front of such a tenant does.

Usage: tenant.py [--port 7190]
"""

import argparse
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


said = {}  # of sessions that /control named
done = {}  # the last operation of each entity, by (component, key)
ids = set()  # of operations that were done


class SessionEndpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        is_gateway = self.path == "/mgw.htm"
        try:
            question = json.loads(self.rfile.read(min(length, 65536)))
            if self.path == "/control":
                said[question["sessionId"]] = bool(question["valid"])
                return self.answer(200, {})
            if self.path == "/operations":
                return self.operate(question)
            if is_gateway:
                question = question[0].get("_requestBody", question[0])
            session = question["sessionId"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return self.answer(400, {"resultCode": "BAD_REQUEST", "success": False})
        if is_gateway and not self.is_call():
            # The gateway's own errors are status 200 too.
            return self.answer(200, {}, {"Result-Status": "3000"})
        is_valid = said.get(session, not session.startswith("bad"))
        self.answer(200, {"resultCode": "OK", "success": True, "result": {"sid": session, "valid": is_valid}},
                    {"Result-Status": "1000"} if is_gateway else {})

    def operate(self, operation):
        if operation["operation"] == "refuse":
            return self.answer(409, {"code": 409, "message": "it was to be refused"})
        name = (self.headers["Idempotency-Key"], operation["operationId"])
        if name not in ids:
            ids.add(name)
            for one in [operation] + operation["children"]:
                done[one["component"], one["entityKey"]] = one.get("body")
        self.answer(200, {"message": "done"})

    def is_call(self):
        fields = self.headers
        return (fields["Operation-Type"] == "com.antcloud.session.validate" and fields["Version"] == "2"
                and all(fields[name] for name in ("AppId", "WorkspaceId", "Ts")))

    def answer(self, status, members, headers=None):
        body = json.dumps(members).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass  # Sessions do not belong into logs.


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if isinstance(sys.exc_info()[1], ConnectionError):
            print("a caller closed its connection before the end of the answer", file=sys.stderr)
        else:
            super().handle_error(request, client_address)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7190)
    server = Server(("127.0.0.1", parser.parse_args().port), SessionEndpoint)
    server.serve_forever()
