#!/usr/bin/env python3
"""Session endpoints that are slow, huge, lying or broken, each under its own URL, beside an honest one.

They listen on this machine: on PORT by plain HTTP, on the six ports after it with TLS, each faulty in its own way.
None of the bad ones ever says in a sound way that the session it was asked about is valid.

`--list` prints the table as JSON instead: {"honest": [URL...], "late": URL, "bad": {NAME: URL}, "allow": what the
validator must be allowed to call}. The late one is honest, after two and a half seconds.

Usage: bad_tenants.py [--port 7191] [--forbidden PORT] [--tls FOLDER] [--list]
  --forbidden   a port of this machine where redirects lead; nothing may ever come there
  --tls         a folder as deploy/scripts/certificates.sh makes it; more certificates of its authority go there
"""

import argparse
import gzip
import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import time
import warnings

VALID = b'{"success":true,"result":{"valid":true}}'
INVALID = b'{"success":true,"result":{"valid":false}}'
LENGTH = b"Content-Length: %d" % len(VALID)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def answer(body, status=b"200 OK", fields=b""):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, fields, len(body), body)


def chunk(data, extension=b""):
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def drip(data, pause=0.2):
    def behave(connection):
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(pause)
    return behave


def flood(start, piece, end=b""):
    """As much as the caller takes, 64 MiB at the most."""
    def behave(connection):
        connection.sendall(start)
        many = piece * (65536 // len(piece) + 1)
        for _ in range(67108864 // len(many)):
            connection.sendall(many)
        connection.sendall(end)
    return behave


def reset(data):
    def behave(connection):
        connection.sendall(data)
        time.sleep(0.05)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return behave


def silent(connection):
    while connection.recv(4096):
        pass


def then_silent(*pieces):
    def behave(connection):
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.1)
        silent(connection)
    return behave


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TEN_MB = 10_000_000


def behaviours(forbidden):
    """Bytes are sent, and the connection is closed; functions do as they like with the connection."""
    there = b"Location: http://127.0.0.1:%d/\r\n" % forbidden
    return {
        # Slow.
        "silent": silent,
        "slow-head": drip(answer(VALID)),
        "slow-body": lambda connection: (connection.sendall(answer(VALID)[:-len(VALID)]), drip(VALID)(connection)),
        "stops-in-body": then_silent(answer(VALID)[:-5]),
        "continues-for-good": drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, pause=0.01),
        # Huge.
        "huge-body": answer(VALID + b" " * TEN_MB),
        "huge-chunked": flood(CHUNKED + chunk(VALID), chunk(b" " * 4096)),
        "endless-body": flood(HEAD + b"Connection: close\r\n\r\n" + VALID, b" " * 4096),
        "endless-head": flood(HEAD, b"X-More: more\r\n"),
        "endless-field": flood(HEAD + b"X-More: ", b"m" * 4096),
        "endless-status": flood(b"HTTP/1.1 200 ", b"O" * 4096),
        "many-fields": HEAD + b"".join(b"X-%d: y\r\n" % n for n in range(1000)) + answer(VALID)[17:],
        "continue-storm": flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n", answer(VALID)),
        "early-hints-storm": flood(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n", answer(VALID)),
        "chunk-extensions": flood(CHUNKED, chunk(b" ", b";x=" + b"y" * 4096), chunk(VALID) + b"0\r\n\r\n"),
        "tiny-chunks": flood(CHUNKED, chunk(b" "), chunk(VALID) + b"0\r\n\r\n"),
        "endless-trailers": flood(CHUNKED + chunk(VALID) + b"0\r\n", b"X-More: more\r\n"),
        "deep-json": answer(b'{"success":' + b"[" * 16000),
        # Redirecting, and other states.
        "moved": answer(VALID, b"301 Moved Permanently", there),
        "found": answer(VALID, b"302 Found", there),
        "temporary": answer(VALID, b"307 Temporary Redirect", there),
        "permanent": answer(VALID, b"308 Permanent Redirect", there),
        "no-content": b"HTTP/1.1 204 No Content\r\n\r\n",
        "not-modified": b"HTTP/1.1 304 Not Modified\r\n\r\n",
        "unauthorized": answer(VALID, b"401 Unauthorized", b'WWW-Authenticate: Basic realm="x"\r\n'),
        "error": answer(VALID, b"500 Internal Server Error"),
        "unavailable": answer(VALID, b"503 Service Unavailable", b"Retry-After: 1\r\n"),
        "switching": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" + VALID,
        "strange-status": answer(VALID, b"999 Strange"),
        # Lying, or of another form.
        "lying-sid": answer(b'{"success":true,"result":{"valid":true,"sid":"another"}}'),
        "says-invalid": answer(INVALID),
        "says-failed": answer(b'{"success":false,"result":{"valid":true}}'),
        "other-code": answer(b'{"resultCode":"EXPIRED","success":true,"result":{"valid":true}}'),
        "number-for-flag": answer(b'{"success":true,"result":{"valid":1}}'),
        "yes-for-flag": answer(b'{"success":"yes","result":{"valid":true}}'),
        "array": answer(b"[" + VALID + b"]"),
        "twice": answer(b'{"success":true,"result":{"valid":false,"valid":true}}'),
        "more-behind": answer(VALID + VALID),
        "mark-before": answer(b"\xef\xbb\xbf" + VALID),
        "wide-text": answer(VALID.decode().encode("utf-16")),
        "gzip": answer(gzip.compress(VALID), fields=b"Content-Encoding: gzip\r\n"),
        "bomb": answer(gzip.compress(b" " * TEN_MB + VALID)[:16000], fields=b"Content-Encoding: gzip\r\n"),
        "empty": answer(b""),
        "html": answer(b"<html><body>502 Bad Gateway</body></html>"),
        # Not quite HTTP.
        "closes": b"",
        "ssh": b"SSH-2.0-OpenSSH_9.2p1\r\n",
        "http-0-9": VALID,
        "http-2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
        "resets": reset(b""),
        "resets-in-body": reset(answer(VALID)[:-5]),
        "length-too-long": answer(VALID).replace(LENGTH, b"Content-Length: %d" % (len(VALID) + 1)),
        "length-too-short": answer(VALID).replace(LENGTH, b"Content-Length: %d" % (len(VALID) - 1)),
        "length-negative": answer(VALID).replace(LENGTH, b"Content-Length: -%d" % len(VALID)),
        "length-signed": answer(VALID).replace(LENGTH, b"Content-Length: +%d" % len(VALID)),
        "lengths-differ": answer(VALID, fields=b"Content-Length: 41\r\n"),
        "length-and-chunks": answer(chunk(VALID) + b"0\r\n\r\n", fields=b"Transfer-Encoding: chunked\r\n"),
        "chunk-size-huge": CHUNKED + b"fffffffffffffffff\r\n" + VALID,
        "chunk-size-words": CHUNKED + b"many\r\n" + VALID,
        "chunks-cut": CHUNKED + chunk(VALID),
        "nul-in-field": answer(VALID, fields=b"X-Nul: a\0b\r\n"),
        "blank-in-name": answer(VALID, fields=b"X Blank: y\r\n"),
        # The valid answer has no request: it must not be the answer to the next request.
        "two-answers": answer(INVALID) + answer(VALID) * 3,
        "answers-ahead": then_silent(answer(INVALID) + answer(VALID)),
        "silent-afterwards": then_silent(answer(INVALID)),
        "answers-later": then_silent(answer(INVALID), answer(VALID)),
    }


def question(connection):
    """The request's path, and the session that it asks about."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None, None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields.get(b"content-length", 0)):
        more = connection.recv(65536)
        if not more:
            return None, None
        body += more
    return head.split(b" ")[1].decode()[1:], json.loads(body)["sessionId"]


def serve(connection, table):
    with connection:
        try:
            connection.settimeout(15)
            while True:
                path, session = question(connection)
                if path is None:
                    return
                if path in ("honest", "late"):
                    time.sleep(2.5 if path == "late" else 0)
                    said = {"resultCode": "OK", "success": True, "result": {"sid": session, "valid": True}}
                    connection.sendall(answer(json.dumps(said).encode()))
                    continue
                behave = table[path]
                if isinstance(behave, bytes):
                    connection.sendall(behave)
                    # A reset must not cut off data that was already sent.
                    connection.shutdown(socket.SHUT_WR)
                    silent(connection)
                else:
                    behave(connection)
                return
        except (OSError, KeyError, ValueError):
            pass


def listen(port, handle):
    listener = socket.create_server(("127.0.0.1", port), backlog=256)

    def accept():
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def certificate(folder, name, alternative, days, authority=True):
    """A certificate and key in one file; signed by the folder's authority, or by itself."""
    path = os.path.join(folder, f"bad-{name}.pem")
    if os.path.exists(path):
        return path
    key, request = path + ".key", path + ".csr"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName={alternative}"]
    run = lambda *words: subprocess.run(["openssl", *words], check=True, capture_output=True)
    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    if authority:
        run("req", "-new", "-key", key, *subject, "-out", request)
        run("x509", "-req", "-in", request, "-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key", "-days", str(days),
            "-set_serial", str(int.from_bytes(os.urandom(8), "big")), "-copy_extensions", "copy", "-out", request)
    else:
        run("req", "-x509", "-new", "-key", key, *subject, "-days", str(days), "-out", request)
    with open(path + ".new", "wb") as whole:
        whole.write(open(request, "rb").read() + open(key, "rb").read())
    os.rename(path + ".new", path)
    return path


def secured(path, table, old=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if old:
        warnings.simplefilter("ignore", DeprecationWarning)  # Old on purpose.
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.load_cert_chain(path)

    def handle(connection):
        try:
            connection.settimeout(15)
            serve(context.wrap_socket(connection, server_side=True), table)
        except OSError:
            connection.close()
    return handle


def stalled(connection):
    with connection:
        silent(connection)


TLS = ["tls-honest", "tls-wrong-authority", "tls-expired", "tls-wrong-host", "tls-1-1", "tls-stalled"]


def listing(port, forbidden):
    bad = {name: f"http://127.0.0.1:{port}/{name}" for name in behaviours(forbidden)}
    bad |= {name: f"https://localhost:{port + 1 + n}/honest" for n, name in enumerate(TLS) if n > 0}
    plain = "http://127.0.0.1"
    bad |= {
        "tls-on-plain-port": f"https://127.0.0.1:{port}/honest",
        "plain-on-tls-port": f"{plain}:{port + 1}/honest",
        "nobody-there": f"{plain}:{port + 7}/honest",
        "no-such-name": f"http://no-such-host.invalid:{port}/honest",
        "decimal": f"http://2130706433:{forbidden}/",
        "hexadecimal": f"http://0x7f.1:{forbidden}/",
        "mapped": f"http://[::ffff:127.0.0.1]:{forbidden}/",
        "metadata": f"http://169.254.169.254:{port}/",
        "not-allowed": f"{plain}:{forbidden}/",
        "name-not-allowed": f"http://localhost:{forbidden}/",
    }
    places = ["127.0.0.1", "localhost", "[::1]"]
    allow = [f"http://127.0.0.1:{p}" for p in (port, port + 1, port + 7)]
    allow += [f"{place}:{port + n}" for n in range(7) for place in places]
    allow += [f"http://no-such-host.invalid:{port}", f"http://169.254.169.254:{port}"]
    honest = [f"http://127.0.0.1:{port}/honest", f"https://localhost:{port + 1}/honest"]
    return {"honest": honest, "late": f"{plain}:{port}/late", "bad": bad, "allow": ",".join(allow)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=7191)
    parser.add_argument("--forbidden", type=int, default=9)
    parser.add_argument("--tls", default=".local/tls")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        return print(json.dumps(listing(options.port, options.forbidden)))
    table = behaviours(options.forbidden)
    listen(options.port, lambda connection: serve(connection, table))
    here = "DNS:localhost,IP:127.0.0.1,IP:::1"
    handlers = [
        secured(certificate(options.tls, "good", here, 30), table),
        secured(certificate(options.tls, "itself", here, 30, authority=False), table),
        secured(certificate(options.tls, "expired", here, 0), table),
        secured(certificate(options.tls, "elsewhere", "DNS:elsewhere.example", 30), table),
        secured(certificate(options.tls, "good", here, 30), table, old=True),
        stalled,
    ]
    for number, handle in enumerate(handlers):
        listen(options.port + 1 + number, handle)
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
