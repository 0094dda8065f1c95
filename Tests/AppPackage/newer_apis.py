#!/usr/bin/env python3
"""newer_apis.py [MODULE...]: checks that client modules need nothing newer than iOS 16 and macOS 13.

The compiler of Linux has no SDK of Apple, but its standard library says for each declaration since which version of iOS
and macOS it exists. This program reads these versions (swift symbolgraph-extract), has the compiler name every
declaration that the code of the client modules refers to (-dump-ast), and prints each reference to a newer one. It
needs a debug build of the project, whose commands it repeats.

It cannot check: code for Apple's systems only (#if canImport(UIKit) and the like); the parts of Foundation that are
another implementation on Linux and have no versions, such as URLSession and NotificationCenter; packages of others,
whose manifests state what they need (check.sh compares them).
"""

import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
LATEST = {"iOS": (16, 0), "macOS": (13, 0)}
LIBRARIES = [
    "Swift", "_Concurrency", "_StringProcessing", "RegexBuilder", "Synchronization", "Observation", "Dispatch",
    "FoundationEssentials", "Foundation",
]
CLIENT = [
    "SyncModel", "Concurrency", "DeviceProtocol", "Credentials", "MobileSync", "MobileSyncLegacy", "LocalEntities",
    "OfflineResources", "ClientServices",
]


def newer_declarations(folder):
    """Returns the name and the first version of each declaration that is newer than LATEST, by its USR.

    Where an older operator has the same name in the same type, the compiler uses that one on older systems.
    """
    for library in LIBRARIES:
        subprocess.run(
            ["swift", "symbolgraph-extract", "-module-name", library, "-target", target()[0], "-output-dir", folder],
            check=True, stdout=subprocess.DEVNULL)
    newer, older = {}, set()
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as file:
            symbols = json.load(file)["symbols"]
        for symbol in symbols:
            path = ".".join(symbol["pathComponents"])
            first = first_version(symbol)
            if first:
                newer[symbol["identifier"]["precise"]] = (path, first)
            elif "::SYNTHESIZED::" not in symbol["identifier"]["precise"]:
                older.add(path)
    return {
        usr: f"{path}: {first}" for usr, (path, first) in newer.items()
        if path not in older or re.search(r"\w(\(.*\))?$", path)
    }


def first_version(symbol):
    """Returns the first version of a system that has the declaration; None when LATEST has it."""
    for entry in symbol.get("availability", []):
        first, latest = entry.get("introduced"), LATEST.get(entry.get("domain"))
        if first and latest and (first["major"], first.get("minor", 0)) > latest:
            return f"{entry['domain']} {first['major']}"
    return None


def target():
    """Returns the compiler's target and the folder of its libraries."""
    info = json.loads(subprocess.run(["swiftc", "-print-target-info"], check=True, capture_output=True).stdout)
    return info["target"]["triple"], info["paths"]["runtimeResourcePath"]


def commands():
    """Returns the compiler's arguments of each module in the debug build."""
    found = {}
    plan = os.path.join(ROOT, ".build", "debug.yaml")
    if not os.path.exists(plan):
        sys.exit("newer_apis.py: there is no debug build; call swift build --build-tests first")
    with open(plan) as file:
        for line in file:
            if line.startswith('    args: ["') and '"-module-name"' in line:
                arguments = json.loads(line.strip().removeprefix("args: "))
                found[arguments[arguments.index("-module-name") + 1]] = arguments
    return found


def syntax_trees(arguments):
    """Yields the typed syntax tree of each file of a module."""
    kept, sources, rest = [], [], iter(arguments[1:])
    for argument in rest:
        if argument in ("-module-name", "-swift-version", "-enable-upcoming-feature", "-package-name", "-Xcc", "-I"):
            kept += [argument, next(rest)]
        elif argument.startswith("-D") or argument in ("-parse-as-library", "-enable-testing"):
            kept.append(argument)
        elif argument.startswith("@"):
            with open(argument[1:]) as file:
                sources = [line.strip().strip('"') for line in file]
    with tempfile.TemporaryDirectory() as folder:
        outputs = [os.path.join(folder, str(number)) for number in range(len(sources))]
        triple, libraries = target()
        command = [
            "swiftc", "-frontend", "-dump-ast", "-dump-ast-format", "json", "-target", triple, *kept,
            "-plugin-path", f"{libraries}/host/plugins",
            "-in-process-plugin-server-path", f"{libraries}/host/libSwiftInProcPluginServer.so",
        ]
        for source, output in zip(sources, outputs):
            command += ["-primary-file", source, "-o", output]
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            sys.exit("newer_apis.py: a module does not compile with the commands of .build/debug.yaml; build first")
        for output in outputs:
            with open(output) as file:
                yield json.load(file)


def references(node):
    """Yields each reference of a part of a syntax tree: its text, whether the text is a type's, its offset.

    A loop with `for await` refers to next(isolation:) here, and to next() where the system is older. The compiler marks
    this await as its own, so the reference is left out.
    """
    stack = [(node, 0, False)]
    while stack:
        node, offset, is_loop = stack.pop()
        if isinstance(node, list):
            stack += [(item, offset, is_loop) for item in node if isinstance(item, (dict, list))]
            continue
        place = node.get("range")
        if isinstance(place, dict):
            offset = place.get("start", offset)
        is_loop = is_loop or (node.get("_kind") == "await_expr" and bool(node.get("implicit")))
        for key, value in node.items():
            if isinstance(value, (dict, list)):
                stack.append((value, offset, is_loop))
            elif key == "decl_usr" and value:
                if not (is_loop and "4next9isolation" in value):
                    yield value, False, offset
            elif isinstance(value, str) and value.startswith("$s"):
                yield value, True, offset


def main():
    modules = sys.argv[1:] or CLIENT
    built = commands()
    with tempfile.TemporaryDirectory() as folder:
        newer = newer_declarations(folder)
    types = [usr for usr in newer if re.fullmatch(r"s:.*[VCOPa]", usr) and len(usr) > 8]
    known = {}

    def newer_in(text, is_type):
        """Returns the newer declarations that a reference names; a mangled type contains the names of its parts."""
        if not is_type:
            return [text] if text in newer else []
        if text not in known:
            known[text] = [usr for usr in types if usr.removeprefix("s:").removesuffix("Qa") in text]
        return known[text]

    failures = set()
    for module in modules:
        for tree in syntax_trees(built[module]):
            with open(os.path.join(ROOT, tree["filename"]), "rb") as file:
                source = file.read()
            for text, is_type, offset in references(tree):
                for usr in newer_in(text, is_type):
                    line = source[:offset].count(b"\n") + 1
                    failures.add(f"{os.path.relpath(tree['filename'], ROOT)}:{line}: {newer[usr]}")
    print("\n".join(sorted(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
