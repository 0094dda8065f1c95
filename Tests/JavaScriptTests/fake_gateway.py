"""A small gateway for the browser test: it serves the page, and has users' channels in memory.

It implements a part of Shared/Device/DeviceProtocol/DeviceProtocol.md: backlog from sync points, new pushes, history,
summary, suspended types, and a restart with Close 2000. It has one instance, and user channels only.
"""

import asyncio
import http
import pathlib
import ssl
import struct
import threading
import time

from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response

WEB = pathlib.Path(__file__).resolve().parents[2] / "Shared" / "Client" / "JavaScript" / "Web"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"
PAGES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    **{f"/{name}": (name, "text/javascript; charset=utf-8") for name in (
        "mss-client.js", "demo.js", "sync-express.js", "sync-express-rules.js", "sync-express-rows.js")},
    "/demo.css": ("demo.css", "text/css; charset=utf-8"),
}


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def message(fields):
    """Encodes [(number, int or bytes or str)]; 0 and empty values are left out, but an empty message is not."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number * 8) + varint(value) if value else b""
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number * 8 + 2) + varint(len(data)) + data
    return out


def fields_of(data):
    """Decodes to {number: [values]}; integers and bytes as they are on the wire."""
    found, at = {}, 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = read()
        value = read()
        if tag % 8 == 2:
            at, value = at + value, data[at:at + value]
        found.setdefault(tag // 8, []).append(value)
    return found


def one(fields, number, default=0):
    value = fields.get(number, [default])[-1]
    return value.decode() if isinstance(value, bytes) and isinstance(default, str) else value


class Session:
    """The session of one connection."""

    def __init__(self, gateway, socket):
        self.gateway, self.socket = gateway, socket
        self.user, self.number, self.points, self.suspended = None, 0, {}, set()

    async def send(self, number, fields):
        packet = message([(number, message(fields))])
        await self.socket.send(struct.pack(">I", len(packet)) + packet)

    async def run(self):
        stream = b""
        async for data in self.socket:
            stream += data
            while len(stream) >= 4 and len(stream) >= 4 + struct.unpack(">I", stream[:4])[0]:
                length = struct.unpack(">I", stream[:4])[0]
                packet, stream = stream[4:4 + length], stream[4 + length:]
                for body, values in fields_of(packet).items():
                    await self.took(body, fields_of(values[0]))

    async def took(self, body, values):
        self.gateway.heard.append((body, values))
        if body == 1:
            self.suspended = {name.decode() for name in values.get(13, [])}
            await self.send(2, [(1, "c1"), (2, 60), (3, 65536), (5, self.gateway.first_resend_ms), (6, 300)])
            if 11 in values:
                await self.bind(fields_of(values[11][0]))
        elif body == 3:
            await self.bind(values)
        elif body == 7:
            await self.send(8, [(1, one(values, 1))])
        elif body == 12:
            await self.send(13, [(1, one(values, 1))])
        elif body == 15:
            self.suspended = {name.decode() for name in values.get(1, [])}
            await self.flow()
        elif body == 16:
            await self.history(values)
        elif body == 18:
            channels = [message([(2, name), (3, len(oplogs))])
                        for (user, name), oplogs in self.gateway.channels.items() if user == self.user]
            await self.send(19, [(1, one(values, 1)), (3, self.number), *((4, channel) for channel in channels)])

    async def bind(self, values):
        self.number, self.user = one(values, 1), one(values, 2, "")
        points = [fields_of(point) for point in values.get(4, [])]
        self.points = {one(point, 2, ""): one(point, 3) for point in points}
        await self.send(4, [(1, self.number), (2, 1)])
        await self.flow()
        await self.send(9, [(1, self.number)])

    async def flow(self):
        """Sends the oplogs above the positions."""
        for (user, name), oplogs in list(self.gateway.channels.items()):
            after = self.points.get(name, 0)
            if user != self.user or name in self.suspended or after >= len(oplogs):
                continue
            self.points[name] = len(oplogs)
            entries = [(6, self.entry(index + 1, oplogs[index])) for index in range(after, len(oplogs))]
            batch = [(2, name), (3, self.number), (4, after), (5, len(oplogs)), *entries]
            await self.send(5, [(1, message(batch))])

    async def history(self, values):
        name = one(values, 2, "")
        oplogs = self.gateway.channels.get((self.user, name), [])
        ids = [index for index in range(len(oplogs), 0, -1) if not one(values, 5) or index < one(values, 5)]
        page = ids[:one(values, 6)]
        entries = [(5, self.entry(index, oplogs[index - 1])) for index in page]
        more = len(page) < len(ids)
        await self.send(17, [(1, one(values, 1)), (4, self.number), *entries, (6, int(more)),
                            (7, page[-1] if more else 0), (8, len(oplogs))])

    @staticmethod
    def entry(index, oplog):
        text, created = oplog
        return message([(1, index), (2, text), (4, f"m{index}"), (5, created)])


class FakeGateway:
    """A gateway on a port of 127.0.0.1, which runs in its own thread."""

    def __init__(self, certificate, key, port, first_resend_ms=10_000):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate, key)
        self.port, self.first_resend_ms = port, first_resend_ms
        self.channels, self.sessions, self.heard = {}, set(), []
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def start(self):
        async def start():
            self.server = await serve(self._connected, "127.0.0.1", self.port, ssl=self.tls, subprotocols=["mss.1"],
                                      process_request=self._page)
        self._run(start())

    def stop(self):
        async def stop():
            for session in list(self.sessions):
                await session.send(14, [(1, 2000), (2, "this gateway shuts down"), (3, 200)])
            self.server.close()
            await self.server.wait_closed()
        self._run(stop())

    def push(self, user, biz_type, text):
        async def push():
            self.channels.setdefault((user, biz_type), []).append((text, int(time.time() * 1000)))
            for session in list(self.sessions):
                await session.flow()
        self._run(push())

    async def _connected(self, socket):
        session = Session(self, socket)
        self.sessions.add(session)
        try:
            await session.run()
        except ConnectionClosed:
            pass
        finally:
            self.sessions.discard(session)

    @staticmethod
    def _page(connection, request):
        path = request.path.split("?")[0]
        if path == "/mss/1":
            return None
        if path not in PAGES:
            return connection.respond(http.HTTPStatus.NOT_FOUND, "there is no such page\n")
        name, kind = PAGES[path]
        body = (WEB / name).read_bytes()
        headers = Headers([("Content-Type", kind), ("Content-Length", str(len(body))),
                           ("Content-Security-Policy", POLICY), ("Connection", "close")])
        return Response(200, "OK", headers, body)
