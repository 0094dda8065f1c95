"""Compares how the API and h11 cut a stream into requests; smuggling.sh runs it."""

import random
import re
import socket
import sys

import h11

PORT, CASES, SEED = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
BODY = b'{"bizType":"UCHAT","linkToken":"u","thirdMsgId":"s","payload":"p"}'
LINE = b"POST /webapi/sync/single?instanceId=demo_app&dryRun=true HTTP/1.1\r\n"
TYPE = b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
PLAIN = LINE + b"Host: t\r\n" + TYPE + LENGTH + b"\r\n" + BODY
SEEDS = [PLAIN, LINE + b"Host: t\r\n" + TYPE + CHUNKED + b"\r\n" + CHUNKS]
LAST = b"GET /openapi.json HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
PIECES = [
    LENGTH, b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"Content-Length: +5\r\n", b"Content-Length: 5, 5\r\n",
    b"content-length : 5\r\n", CHUNKED, b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding:\x0bchunked\r\n", b"Transfer-Encoding: xchunked\r\n",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n",
    b"Host: u\r\n", b" folded\r\n", b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";a=b", b"0\r\n\r\n", b"0", b"5",
    b"X: y\r\n", PLAIN, LAST,
]


def mutated(random_):
    request = random_.choice(SEEDS)
    for _ in range(random_.randint(1, 3)):
        # Mostly where lines begin and end, which is where parsers differ.
        places = [match.end() for match in re.finditer(rb"\r\n|: |:|;", request)] + [random_.randrange(len(request))]
        at, kind = random_.choice(places), random_.random()
        if kind < 0.6:
            request = request[:at] + random_.choice(PIECES) + request[at:]
        elif kind < 0.8:
            request = request[:at] + request[at + random_.randint(1, 4):]
        else:
            request = request[:at] + bytes([random_.randrange(256)]) + request[at + 1:]
    return request


def strict(stream):
    """How many requests h11 sees to their end. Empty lines between them may be skipped (RFC 9112, 2.2)."""
    count = 0
    while stream := stream.lstrip(b"\r\n"):
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=16_384)
        parser.receive_data(stream)
        try:
            while not isinstance(event := parser.next_event(), h11.EndOfMessage):
                if event in (h11.NEED_DATA, h11.PAUSED):
                    return count
            count += 1
            parser.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            parser.send(h11.EndOfMessage())
        except h11.ProtocolError:
            return count
        if parser.our_state is not h11.DONE:
            return count
        stream = parser.trailing_data[0]
    return count


def answers(stream):
    """The statuses that the API answers with, but 100; None when it does not close."""
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as caller:
        caller.sendall(stream)
        caller.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while piece := caller.recv(65_536):
                received += piece
        except ConnectionResetError:
            pass
        except TimeoutError:
            return None
    statuses = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        received = rest[int(length[1]) if length else 0:]
        if status != 100:
            statuses.append(status)
    return statuses


def main():
    random_, findings, taken = random.Random(SEED), 0, 0
    for number in range(CASES):
        stream = mutated(random_) + LAST
        seen, got = strict(stream), answers(stream)
        served = None if got is None else sum(status == 200 for status in got)
        taken += bool(served)
        # Stricter than h11 is as it should be; more requests than it sees, or one left open, is not.
        if served is None or served > seen or any(status >= 500 for status in got):
            findings += 1
            print(f"case {number}: h11 sees {seen} requests, the API answers {got}\n  {stream!r}")
    print(f"{CASES} requests, {taken} of them served in part: {findings} findings")
    sys.exit(1 if findings else 0)


main()
