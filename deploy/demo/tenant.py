#!/usr/bin/env python3
"""A tenant's session endpoint for the demo: every session is valid but those that start with "bad".

Usage: tenant.py [--port 7190]
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class SessionEndpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        try:
            session = json.loads(self.rfile.read(min(length, 65536)))["sessionId"]
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"resultCode": "BAD_REQUEST", "success": False})
        is_valid = not session.startswith("bad")
        self.answer(200, {"resultCode": "OK", "success": True, "result": {"sid": session, "valid": is_valid}})

    def answer(self, status, members):
        body = json.dumps(members).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass  # Sessions do not belong into logs.


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7190)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), SessionEndpoint)
    server.serve_forever()
