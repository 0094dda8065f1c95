#!/usr/bin/env python3
"""The cases of Eclipse's MQTT interoperability tests that apply to a server without publishing clients. A client of
bare packets is the device, and pushes over HTTP are the publications. The names are those of Eclipse's suite;
`revoked_behind_window` and `recalled_behind_window` are cases of this service.

mqtt_cases.py CASE VERSION --api PORT --ports PORT,PORT --ca FILE     VERSION: 4 for 3.1.1, or 5
Exit status 0: the case passes. Otherwise the last line names the difference.
"""

import argparse
import json
import socket
import ssl
import struct
import sys
import time
import urllib.parse
import urllib.request

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = (
    1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14)
# For each property: the number of bytes of its value, or its type.
PROPERTIES = {1: 1, 2: 4, 3: "text", 8: "text", 9: "bytes", 11: "number", 17: 4, 18: "text", 19: 2, 21: "text",
              22: "bytes", 26: "text", 28: "text", 31: "text", 33: 2, 34: 2, 35: 2, 36: 1, 37: 1, 38: "pair", 39: 4,
              40: 1, 41: 1, 42: 1}
options = None


def text(value):
    data = value.encode()
    return struct.pack("!H", len(data)) + data


def number(value):
    data = bytearray()
    while True:
        value, digit = divmod(value, 128)
        data.append(digit | (0x80 if value else 0))
        if not value:
            return bytes(data)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def int(self, count):
        return int.from_bytes(self.read(count), "big")

    def bytes(self):
        return self.read(self.int(2))

    def number(self):
        value, shift = 0, 0
        while True:
            digit = self.int(1)
            value |= (digit & 0x7F) << shift
            if digit < 0x80:
                return value
            shift += 7

    def properties(self):
        end, found = self.number() + self.at, []
        while self.at < end:
            name = self.int(1)
            form = PROPERTIES[name]
            if form == "pair":
                value = (self.bytes().decode(), self.bytes().decode())
            elif form == "text":
                value = self.bytes().decode()
            elif form == "bytes":
                value = self.bytes()
            elif form == "number":
                value = self.number()
            else:
                value = self.int(form)
            found.append((name, value))
        return found

    def rest(self):
        return self.data[self.at:]


class Packet:
    """A packet of the server, with the parts that the tests check."""

    def __init__(self, kind, flags, body, version):
        self.kind, self.flags, self.properties = kind, flags, []
        read = Reader(body)
        if kind == CONNACK:
            self.session_present, self.code = read.int(1), read.int(1)
            self.properties = read.properties() if version == 5 else []
        elif kind == PUBLISH:
            self.topic = read.bytes().decode()
            self.qos = flags >> 1 & 3
            self.id = read.int(2) if self.qos else 0
            self.properties = read.properties() if version == 5 else []
            self.payload = read.rest().decode()
        elif kind in (SUBACK, UNSUBACK):
            self.id = read.int(2)
            self.properties = read.properties() if version == 5 else []
            self.codes = list(read.rest())
        elif kind == DISCONNECT:
            self.code = read.int(1) if body else 0

    def values(self, name):
        return [value for key, value in self.properties if key == name]


class Client:
    """A device that sends bare packets."""

    def __init__(self, client_id, user="", version=4, gateway=0, keep_alive=60, clean=True, properties=b""):
        self.version, self.next_id = version, 0
        context = ssl.create_default_context(cafile=options.ca)
        raw = socket.create_connection(("127.0.0.1", options.ports[gateway]))
        self.socket = context.wrap_socket(raw, server_hostname="127.0.0.1")
        name = f"demo_app/{user}" if user else "demo_app"
        variable = text("MQTT") + bytes([version, 0xC0 | (2 if clean else 0)]) + struct.pack("!H", keep_alive)
        if version == 5:
            variable += number(len(properties)) + properties
        self.send(CONNECT, 0, variable + text(client_id) + text(name) + text("s1"))
        self.connack = self.expect(CONNACK)

    def send(self, kind, flags, body):
        self.socket.sendall(bytes([kind << 4 | flags]) + number(len(body)) + body)

    def packet_id(self):
        self.next_id += 1
        return struct.pack("!H", self.next_id)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def receive(self, seconds=10.0):
        """Returns the next packet; None after the time limit, or at the end of the connection."""
        self.socket.settimeout(seconds)
        try:
            first = self.exactly(1)[0]
            length, shift = 0, 0
            while True:
                digit = self.exactly(1)[0]
                length |= (digit & 0x7F) << shift
                shift += 7
                if digit < 0x80:
                    break
            return Packet(first >> 4, first & 15, self.exactly(length), self.version)
        except (TimeoutError, socket.timeout):
            return None
        except (EOFError, ConnectionResetError, ssl.SSLError):
            self.is_over = True
            return None

    is_over = False

    def expect(self, kind):
        packet = self.receive()
        check(packet is not None and packet.kind == kind, f"packet {kind}, not {packet and packet.kind}")
        return packet

    def subscribe(self, *filters, qos=1):
        body = self.packet_id() + (b"\0" if self.version == 5 else b"")
        self.send(SUBSCRIBE, 2, body + b"".join(text(one) + bytes([qos]) for one in filters))
        return self.expect(SUBACK).codes

    def unsubscribe(self, *filters):
        body = self.packet_id() + (b"\0" if self.version == 5 else b"")
        self.send(UNSUBSCRIBE, 2, body + b"".join(map(text, filters)))
        return self.expect(UNSUBACK).codes

    def answer(self, packet):
        self.send(PUBACK, 0, struct.pack("!H", packet.id))

    def messages(self, count, answers=True, seconds=10.0):
        """Returns this number of messages, or fewer when no more arrive in time."""
        found = []
        while len(found) < count:
            packet = self.receive(seconds)
            if packet is None:
                break
            if packet.kind == PUBLISH:
                found.append(packet)
                if answers and packet.qos:
                    self.answer(packet)
        return found

    def leave(self):
        # The server handles packets in order: the response shows that it has all earlier answers.
        self.send(PINGREQ, 0, b"")
        while (packet := self.receive()) is not None and packet.kind != PINGRESP:
            pass
        self.send(DISCONNECT, 0, b"")
        self.socket.close()


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def push(user, *payloads, **more):
    for payload in payloads:
        call("sync/single", {"bizType": "UCHAT", "linkToken": user, "thirdMsgId": f"{user}-{payload}",
                             "payload": payload, **more})


def call(path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{options.api}/webapi/{path}?instanceId=demo_app", json.dumps(body).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        result = json.load(answer)
        check(result["success"], f"{path} succeeds: {result}")


def wait_until_stored(user, payload, seconds=10):
    """Waits until the service has recorded the answer to a message: only then another gateway knows it."""
    query = urllib.parse.urlencode(
        {"instanceId": "demo_app", "bizType": "UCHAT", "linkToken": user, "thirdMsgId": f"{user}-{payload}"})
    end = time.monotonic() + seconds
    while True:
        url = f"http://127.0.0.1:{options.api}/webapi/sync/trace?{query}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            trace = json.load(answer)
        if any(one.get("storedUpTo", 0) >= trace["oplogId"] for one in trace["receivers"]):
            return
        check(time.monotonic() < end, f"the answer to {payload} is recorded: {trace}")
        time.sleep(0.05)


def payloads(messages):
    return [message.payload for message in messages]


def basic(user, version):
    client = Client(user, user, version)
    check(client.connack.code == 0 and client.connack.session_present == 0, "accepted, with a new session")
    check(client.subscribe("UCHAT", "OTHER", qos=2) == [1, 1], "QoS 2 is reduced to 1")
    push(user, "1", "2", "3")
    messages = client.messages(3)
    check(payloads(messages) == ["1", "2", "3"] and {one.topic for one in messages} == {"UCHAT"}, "all, in order")
    check({one.qos for one in messages} == {1} and not any(one.flags & 9 for one in messages), "QoS 1, not a duplicate")
    client.leave()


def zero_length_clientid(user, version):
    client = Client("", user, version)
    check(client.connack.code == (0x85 if version == 5 else 2), f"it is refused, not {client.connack.code}")
    check(client.receive() is None and client.is_over, "and the connection ends")


def offline_message_queueing(user, version):
    client = Client(user, user, version, clean=False)
    client.subscribe("UCHAT")
    client.leave()
    push(user, "1", "2", "3")
    client = Client(user, user, version, gateway=1, clean=False)
    client.subscribe("UCHAT")
    check(payloads(client.messages(3)) == ["1", "2", "3"], "the backlog, in order, over another gateway")
    client.leave()


def overlapping_subscriptions(user, version):
    client = Client(user, user, version)
    check(client.subscribe("UCHAT", qos=1) == [1] and client.subscribe("#", "+", qos=0) == [0, 0], "granted")
    push(user, "1", "2")
    messages = client.messages(3, seconds=2)
    check(payloads(messages) == ["1", "2"] and {one.qos for one in messages} == {1}, "once, with the highest QoS")
    client.leave()


def keepalive(user, version):
    client = Client(user, user, version, keep_alive=4)
    client.subscribe("UCHAT")
    begin = time.monotonic()
    for _ in range(3):
        time.sleep(3)
        client.send(PINGREQ, 0, b"")
        client.expect(PINGRESP)
    silent = time.monotonic()
    packet = client.receive(20)
    check(packet is None or packet.kind == DISCONNECT and packet.code == 0x8D, "the packet has the reason")
    if packet:
        client.receive(2)
    check(client.is_over and silent - begin > 8.5, "the connection ends, and not while it pings")
    # One and a half times the keep alive, plus the second between two checks of the gateway.
    check(time.monotonic() - silent < 4 * 1.5 + 2, f"in time, not after {time.monotonic() - silent} s")


def redelivery_on_reconnect(user, version):
    client = Client(user, user, version)
    client.subscribe("UCHAT")
    push(user, "1", "2", "3")
    messages = client.messages(3, answers=False)
    client.answer(messages[0])
    wait_until_stored(user, "1")
    client.socket.close()
    client = Client(user, user, version, gateway=1)
    client.subscribe("UCHAT")
    found = payloads(client.messages(3, seconds=3))
    check(found == ["2", "3"], f"only the unanswered messages: {found}")
    client.leave()


def subscribe_failure(user, version):
    client = Client(user, user, version)
    codes = client.subscribe("UCHAT", "a/#/b", "a+", "$share/group/UCHAT")
    check(codes == ([1, 0x8F, 0x8F, 0x9E] if version == 5 else [1, 0x80, 0x80, 0x80]), f"granted and refused: {codes}")
    client.leave()


def unsubscribe(user, version):
    client = Client(user, user, version)
    client.subscribe("UCHAT", "OTHER")
    codes = client.unsubscribe("UCHAT", "NEVER")
    check(codes == ([0, 0x11] if version == 5 else []), f"answered: {codes}")
    push(user, "1")
    check(client.messages(1, seconds=2) == [], "no message arrives")
    client.subscribe("UCHAT")
    check(payloads(client.messages(1)) == ["1"], "and no message is lost")
    client.leave()


def user_properties(user, version):
    client = Client(user, user, version)
    client.subscribe("UCHAT")
    push(user, "1")
    push(user, "2", conversation="chat é")
    message, second = client.messages(2)
    properties = dict(message.values(38))
    check(properties["thirdMsgId"] == f"{user}-1" and int(properties["oplogId"]) > 0, f"{properties}")
    check(message.values(1) == [1], "the payload is text")
    check("conversation" not in properties, "an oplog without a conversation does not name one")
    check(dict(second.values(38))["conversation"] == "chat é", f"{second.values(38)}")
    client.leave()


def publication_expiry(user, version):
    client = Client(user, user, version)
    client.subscribe("UCHAT")
    client.leave()
    now = int(time.time() * 1000)
    push(user, "short", validTimeEnd=now + 3_000)
    push(user, "long", validTimeEnd=now + 600_000)
    time.sleep(4)
    client = Client(user, user, version)
    client.subscribe("UCHAT")
    messages = client.messages(2, seconds=2)
    check(payloads(messages) == ["long"], f"only the valid message: {payloads(messages)}")
    check(500 < messages[0].values(2)[0] <= 596, f"its remaining time: {messages[0].values(2)}")
    client.leave()


def maximum_packet_size(user, version):
    client = Client(user, user, version, properties=bytes([39]) + struct.pack("!I", 1_000))
    check(client.connack.code == 0x95, f"too small for possible messages: {client.connack.code}")
    client = Client(user, user, version, properties=bytes([39]) + struct.pack("!I", 8_192))
    check(client.connack.code == 0, "large enough")
    client.leave()


def server_keep_alive(user, version):
    client = Client(user, user, version, keep_alive=60_000)
    check(client.connack.values(19) == [300], f"the server names its maximum: {client.connack.properties}")
    client.leave()


def flow_control(user, version):
    client = Client(user, user, version, properties=bytes([33]) + struct.pack("!H", 2))
    client.subscribe("UCHAT")
    push(user, "1", "2", "3", "4")
    first = client.messages(3, answers=False, seconds=2)
    check(payloads(first) == ["1", "2"], f"two without an answer: {payloads(first)}")
    client.answer(first[0])
    second = client.messages(2, answers=False, seconds=2)
    check(payloads(second) == ["3"], f"one more for each answer: {payloads(second)}")
    for message in first[1:] + second:
        client.answer(message)
    check(payloads(client.messages(1)) == ["4"], "and the last")
    client.leave()


def with_window_of_one(user, version):
    client = Client(user, user, version, properties=bytes([33]) + struct.pack("!H", 1))
    client.subscribe("#")
    return client


def revoked_behind_window(user, version):
    client = with_window_of_one(user, version)
    push(user, *map(str, range(1, 11)), bizType="TRADE-SECURE")
    first = client.messages(1, answers=False)
    check(payloads(first) == ["1"], f"one without an answer: {payloads(first)}")
    call("session/revoke", {"userId": user})
    push(user, "unchecked")
    client.answer(first[0])
    rest = client.messages(2, seconds=3)
    check(payloads(rest) == ["unchecked"], f"nothing checked after the revocation: {payloads(rest)}")
    client.leave()


def recalled_behind_window(user, version):
    client = with_window_of_one(user, version)
    push(user, "1", "2", "3")
    first = client.messages(1, answers=False)
    check(payloads(first) == ["1"], f"one without an answer: {payloads(first)}")
    call("sync/recall", {"bizType": "UCHAT", "linkToken": user, "thirdMsgId": f"{user}-2"})
    client.answer(first[0])
    rest = client.messages(2, seconds=3)
    check(payloads(rest) == ["3"], f"neither the recalled message nor its tombstone: {payloads(rest)}")
    client.leave()


def takeover(user, version):
    first = Client(user, user, version)
    first.subscribe("UCHAT")
    push(user, "1")
    check(payloads(first.messages(1)) == ["1"], "the first has it")
    wait_until_stored(user, "1")
    second = Client(user, user, version, gateway=1)
    packet = first.receive()
    check((packet.kind == DISCONNECT and packet.code == 0x8E) if version == 5 else packet is None, "it gets the reason")
    first.receive(2)
    check(first.is_over, "and ended")
    second.subscribe("UCHAT")
    push(user, "2")
    check(payloads(second.messages(1)) == ["2"], "the second continues")
    second.leave()


def publishes_nothing(user, version):
    client = Client(user, user, version)
    client.send(PUBLISH, 0, text("UCHAT") + (b"\0" if version == 5 else b"") + b"hello")
    packet = client.receive()
    check((packet.kind == DISCONNECT and packet.code == 0x87) if version == 5 else packet is None, "it is refused")
    client.receive(2)
    check(client.is_over, "and the connection ends")


CASES = [basic, zero_length_clientid, offline_message_queueing, overlapping_subscriptions, keepalive,
         redelivery_on_reconnect, subscribe_failure, unsubscribe, user_properties, publication_expiry,
         maximum_packet_size, server_keep_alive, flow_control, revoked_behind_window,
         recalled_behind_window, takeover, publishes_nothing]


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=[case.__name__ for case in CASES])
    parser.add_argument("version", type=int, choices=(4, 5))
    parser.add_argument("--api", type=int, required=True)
    parser.add_argument("--ports", type=lambda value: [int(port) for port in value.split(",")], required=True)
    parser.add_argument("--ca", required=True)
    options = parser.parse_args()
    case = next(case for case in CASES if case.__name__ == options.case)
    try:
        case(f"mqtt-{options.case}-{options.version}", options.version)
    except AssertionError as fault:
        sys.exit(f"{options.case}, version {options.version}: {fault}")


if __name__ == "__main__":
    main()
