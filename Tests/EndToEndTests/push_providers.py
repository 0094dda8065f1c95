#!/usr/bin/python3
"""Plays the push services of Apple and Google for an app's server: HTTP/2 over TLS, token authentication.

Each response is written to a file as a line of JSON. A token that begins with "dead" is unregistered. A token that
begins with "bad" is refused. A token that begins with "bee" gets "service busy" the first time.
"""

import argparse
import base64
import json
import socketserver
import ssl
import threading
import time
import urllib.parse

import h2.config
import h2.connection
import h2.events
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils


class Refusal(Exception):
    """Status and body of a response other than 200."""


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verified(token, key, algorithm):
    """Returns the header and the claims of a JSON Web Token that the key has signed."""
    signed, _, signature = token.rpartition(".")
    header, claims = (json.loads(decoded(part)) for part in signed.split("."))
    if header["alg"] != algorithm:
        raise InvalidSignature
    signature = decoded(signature)
    if algorithm == "ES256":
        r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
        key.verify(utils.encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
    else:
        key.verify(signature, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return header, claims


class Providers:
    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.busy = set()
        self.access = None

        def public(path):
            with open(path, "rb") as file:
                return serialization.load_pem_public_key(file.read())

        self.apns_key = public(options.apns_key)
        self.fcm_key = public(options.fcm_key)

    def answer(self, headers, body):
        path = headers[":path"]
        try:
            if path.startswith("/3/device/"):
                return self.log_response("apns", path.removeprefix("/3/device/"), self.apns(headers, body))
            if path == "/token":
                return 200, self.grant(body)
            if path == f"/v1/projects/{self.options.project}/messages:send":
                return self.log_response("fcm", json.loads(body)["message"]["token"], self.fcm(headers, body))
            return 404, {}
        except (Refusal, InvalidSignature, KeyError, ValueError) as error:
            if isinstance(error, Refusal):
                status, text = error.args
            else:
                status, text = 403, {"reason": "InvalidProviderToken"}
            token = path.rpartition("/")[2] if "device" in path else json.loads(body or b"{}")["message"]["token"]
            return self.log_response("apns" if "device" in path else "fcm", token, (status, text))

    def log_response(self, provider, token, answer):
        with self.lock, open(self.options.file, "a") as file:
            line = {"at": time.time(), "provider": provider, "token": token, "status": answer[0]}
            file.write(json.dumps(line) + "\n")
        return answer

    def is_busy(self, token):
        with self.lock:
            if not token.startswith("bee") or token in self.busy:
                return False
            self.busy.add(token)
            return True

    def apns(self, headers, body):
        header, claims = verified(headers["authorization"].removeprefix("bearer "), self.apns_key, "ES256")
        if header["kid"] != "KEY1234567" or claims["iss"] != "TEAM123456" or abs(time.time() - claims["iat"]) > 3600:
            raise Refusal(403, {"reason": "InvalidProviderToken"})
        if headers["apns-topic"] != "com.example.bank":
            raise Refusal(400, {"reason": "TopicDisallowed"})
        if headers["apns-push-type"] != "background" or headers["apns-priority"] != "5":
            raise Refusal(400, {"reason": "BadPriority"})
        if json.loads(body) != {"aps": {"content-available": 1}}:
            raise Refusal(400, {"reason": "PayloadEmpty"})
        token = headers[":path"].removeprefix("/3/device/")
        if token.startswith("dead"):
            raise Refusal(410, {"reason": "Unregistered", "timestamp": 1})
        if token.startswith("bad"):
            raise Refusal(400, {"reason": "DeviceTokenNotForTopic"})
        if self.is_busy(token):
            raise Refusal(503, {"reason": "ServiceUnavailable"})
        return 200, {}

    def grant(self, body):
        form = urllib.parse.parse_qs(body.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        _, claims = verified(form["assertion"][0], self.fcm_key, "RS256")
        assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        self.access = f"access-{time.time()}"
        return {"access_token": self.access, "expires_in": 3599, "token_type": "Bearer"}

    def fcm(self, headers, body):
        message = json.loads(body)["message"]
        if headers["authorization"] != f"Bearer {self.access}":
            raise Refusal(401, {"error": {"status": "UNAUTHENTICATED"}})
        if message["android"]["priority"] != "high" or "notification" in message:
            raise Refusal(400, {"error": {"status": "INVALID_ARGUMENT"}})
        if message["token"].startswith("dead"):
            raise Refusal(404, {"error": {"status": "NOT_FOUND", "details": [{"errorCode": "UNREGISTERED"}]}})
        return 200, {"name": "projects/p/messages/1"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ["--port", "--file", "--certificate", "--key", "--apns-key", "--fcm-key", "--project"]:
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    providers = Providers(options)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    context.set_alpn_protocols(["h2"])

    class Connection(socketserver.BaseRequestHandler):
        def handle(self):
            stream = context.wrap_socket(self.request, server_side=True)
            http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
            http.initiate_connection()
            stream.sendall(http.data_to_send())
            requests = {}
            while data := stream.recv(65_536):
                for event in http.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        requests[event.stream_id] = (dict(event.headers), bytearray())
                    elif isinstance(event, h2.events.DataReceived):
                        requests[event.stream_id][1].extend(event.data)
                        http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, h2.events.StreamEnded):
                        headers, body = requests.pop(event.stream_id)
                        status, answer = providers.answer(headers, bytes(body))
                        http.send_headers(event.stream_id, [(":status", str(status))])
                        http.send_data(event.stream_id, json.dumps(answer).encode(), end_stream=True)
                stream.sendall(http.data_to_send())

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", int(options.port)), Connection) as server:
        server.serve_forever()


main()
