"""How long every page of the console takes: follows every link from the start page, and asks what people ask.

    python3 pages.py --invitation http://127.0.0.1:7090/setup#… --instance bench [--rounds 30] [--within 200]

Fails when the 95th percentile of a page is above `--within` milliseconds, or a page above `--bytes`.
"""

import argparse
import collections
import html
import re
import sys
import urllib.parse

from console_client import Console

# Of each kind of page so many are asked for.
SAMPLES = 4


def kind(address):
    """What page it is: its path without names and numbers, and the names of what it is asked."""
    path, _, query = address.partition("?")
    words = [part if re.fullmatch(r"[a-z-]+", part) and part != "bench" else "*" for part in path.split("/")[1:]]
    asked = sorted(name for name, value in urllib.parse.parse_qsl(query) if value)
    return "/" + "/".join(words) + ("?" + "&".join(asked) if asked else "")


def links(page, at):
    for reference in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', page):
        address = urllib.parse.urljoin(at, html.unescape(reference)).split("#")[0]
        if address.startswith("/") and not re.search(r"\.(css|js|svg|json|csv|config)$|/export", address):
            yield address


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--invitation", required=True)
    parser.add_argument("--instance", default="bench")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--within", type=float, default=200)
    parser.add_argument("--bytes", type=int, default=400_000)
    options = parser.parse_args()
    console = Console(options.invitation)
    at = f"/instances/{options.instance}"
    asked = [
        "/", "/instances", "/accounts", "/records", "/me", "/api",
        *(f"{at}/overview?range={one}" for one in ("hour", "day", "week", "month")),
        *(f"{at}/data?by=user&id={one}" for one in ("user-77", "many", "big", "nobody")),
        f"{at}/data?by=device&id=device-77",
        f"{at}/configurations?search=SYNC-7", f"{at}/configurations?search=nothing", f"{at}/devices?user=user-77",
        f"{at}/records?actor=ann", f"{at}/records?actor=ann&action=createConfiguration",
        f"{at}/records?from=1577836800000&to=4102444800000", f"{at}/records?actor=nobody",
    ]
    found, queue = collections.defaultdict(list), collections.deque(asked)
    seen = set()
    while queue:
        address = queue.popleft()
        # The newest entries of a list, and some entries that are requested by name.
        if address in seen or len(found[kind(address)]) >= SAMPLES and address not in asked:
            continue
        seen.add(address)
        status, page, _ = console.page(address)
        if status >= 500:
            sys.exit(f"{address}: {status}\n{page}")
        if status != 200:
            continue
        found[kind(address)].append((address, len(page)))
        queue.extend(links(page, address))
    bad = []
    print(f"{'page':64} {'p50':>8} {'p95':>8} {'largest':>10}")
    for name, pages in sorted(found.items()):
        if not pages:
            continue
        times = []
        for _ in range(max(1, options.rounds // len(pages))):
            times += [console.page(address)[2] for address, _ in pages]
        times.sort()
        middle, late, largest = times[len(times) // 2], times[len(times) * 95 // 100], max(size for _, size in pages)
        print(f"{name:64} {middle:6.1f} ms {late:5.1f} ms {largest / 1e3:7.1f} kB", flush=True)
        if late > options.within or largest > options.bytes:
            bad.append(name)
    if bad:
        sys.exit("too slow or too large: " + ", ".join(bad))


main()
