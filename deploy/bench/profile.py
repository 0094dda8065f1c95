"""Sorts samples of `perf script` by process and kind of work: profile.sh."""

import collections
import re
import sys

KINDS = ["kernel", "memory", "Swift", "NIO", "TLS", "messages", "own", "other"]
MEMORY = re.compile(
    r"malloc|free|realloc|calloc|mem(move|cpy|set|cmp)|_int_|unlink_chunk|RefCount|deallocating"
    r"|swift_(retain|release|alloc|dealloc|bridgeObject|isUnique|slow)"
)
TLS = re.compile(r"BoringSSL|NIOSSL|bssl|aes|sha256|sha512|chacha")
NIO = re.compile(r"NIOCore|NIOPosix|NIOHTTP1|NIOEmbedded|NIOAsync|llhttp|HummingbirdCore")
MESSAGES = re.compile(r"SwiftProtobuf|Mss_|Protobuf")


def kind(symbol, library):
    if "kernel" in library:
        return "kernel"
    if MEMORY.search(symbol):
        return "memory"
    if "libswift" in library:
        return "Swift"
    if "libc.so" in library or "vdso" in library:
        return "other"
    for expression, name in ((TLS, "TLS"), (NIO, "NIO"), (MESSAGES, "messages")):
        if expression.search(symbol):
            return name
    return "own"


def main(names_file, parents_file, *options):
    names = {}
    for line in open(names_file, encoding="utf-8"):
        pid, name = line.split()
        names[pid] = name
    parents = dict(line.split() for line in open(parents_file, encoding="utf-8"))

    def process(pid):
        for _ in range(8):
            if pid in names:
                return names[pid]
            pid = parents.get(pid, "0")
        return "the rest"

    shares = collections.defaultdict(collections.Counter)
    functions = collections.defaultdict(collections.Counter)
    total = idle = 0
    for line in sys.stdin:
        parts = line.split(None, 2)
        if len(parts) < 3:
            continue
        pid, rest = parts[0], parts[2]
        symbol, _, library = rest.rpartition(" (")
        total += 1
        if pid == "0":
            idle += 1
            continue
        name = process(pid)
        shares[name][kind(symbol, library)] += 1
        functions[name][symbol] += 1
    print("| process | of both cores | " + " | ".join(KINDS) + " |\n|---|---:|" + "---:|" * len(KINDS))
    for name, counts in sorted(shares.items(), key=lambda item: -item[1].total()):
        if counts.total() < total / 200:
            continue
        cells = [f"{100 * counts[k] / counts.total():.0f} %" if counts[k] else "" for k in KINDS]
        print(f"| {name} | {100 * counts.total() / total:.1f} % | " + " | ".join(cells) + " |")
    print(f"| idle | {100 * idle / total:.1f} % |" + " |" * len(KINDS))
    if "--top" in options:
        for name, counts in functions.items():
            print(f"\n{name}")
            for symbol, count in counts.most_common(15):
                print(f"  {100 * count / shares[name].total():5.1f} %  {symbol[:100]}")


main(*sys.argv[1:])
