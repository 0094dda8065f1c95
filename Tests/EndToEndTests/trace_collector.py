#!/usr/bin/env python3
"""A collector of traces (OTLP over HTTP, JSON) that writes each request to a file as one line."""

import argparse
import http.server
import json


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--file", required=True)
    options = parser.parse_args()

    class Collector(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_good = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
            if is_good:
                with open(options.file, "a") as file:
                    file.write(json.dumps(json.loads(body)) + "\n")
            self.send_response(200 if is_good else 400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Collector).serve_forever()


main()
