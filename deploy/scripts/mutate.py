#!/usr/bin/env python3
"""Makes a copy of the project in which rules of delivery can be broken, for deploy/known-bad.

Usage: deploy/scripts/mutate.py             writes .build-known-bad/source
       deploy/scripts/mutate.py --check     only checks that every mutation applies; writes nothing

Tests/KnownBad/README.md describes the mutations. An error names the mutation and its file.
"""
import os
import re
import shutil
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
COPY = ".build-known-bad/source"
MUTATIONS, SOURCES = "Tests/KnownBad/Mutations", "Tests/KnownBad/Sources"
ENUM = "Shared/Model/SyncModel/KnownBad.swift"


def read(path):
    with open(path, encoding="utf8") as file:
        return file.read()


def files_below(folder):
    """Paths from the folder, sorted."""
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


def mutations(path):
    """Yields (source file, switches, hunks) for each mutation of a file; a hunk is a list of lines with their marks."""
    source, switches, hunks = None, None, []
    for number, line in enumerate(read(path).splitlines() + ["switch"], 1):
        if re.match("(file|switch)( |$)", line):
            if switches:
                yield source, switches, [hunk for hunk in hunks if hunk]
            word, _, rest = line.partition(" ")
            switches, hunks = ([], [[]]) if word == "file" else (re.split(", *", rest), [[]])
            source = rest if word == "file" else source
        elif not line:
            hunks.append([])
        elif line[0] in " -+" and source and switches:
            hunks[-1].append(line)
        elif line[0] != "#":
            sys.exit(f"mutate: {path}:{number}: not a line of a mutation: {line}")


def mutate(source, text, changes):
    """The text with all hunks applied. `changes` is a list of (switches, hunk)."""
    edits = []
    for switches, hunk in changes:
        name = f"mutation {', '.join(switches)} of {source}"
        old, new = (["\n" + line[1:] for line in hunk if line[0] != mark] for mark in "+-")
        old, new = "".join(old) + "\n", "".join(new) + "\n"
        found = [at for at in range(len(text)) if text.startswith(old, at)]
        if old == "\n" or len(found) != 1:
            sys.exit(f"mutate: {name}: these lines must be in the file exactly once, found {len(found)} times:{old}")
        # The newline at the end also begins the next line.
        edits.append((found[0], found[0] + len(old) - 1, new[:-1], name))
    edits.sort()
    for (_, end, _, first), (begin, _, _, second) in zip(edits, edits[1:]):
        if begin < end:
            sys.exit(f"mutate: {first} and {second} change the same lines")
    for begin, end, new, _ in reversed(edits):
        text = text[:begin] + new + text[end:]
    return text


def with_switches(text):
    """The text of a source file that can use the switches: it imports their module."""
    return text if re.search(r"^(package )?import SyncModel$", text, re.M) else "import SyncModel\n" + text


def main():
    count, by_source, used = 0, {}, set()
    for name in files_below(MUTATIONS):
        for source, switches, hunks in mutations(os.path.join(MUTATIONS, name)):
            added = {test for hunk in hunks for line in hunk for test in re.findall(r"KnownBad\.(\w+)\.isOn", line)}
            if added != set(switches):
                sys.exit(f"mutate: mutation {', '.join(switches)} of {source} tests: {', '.join(sorted(added))}")
            by_source.setdefault(source, []).extend((switches, hunk) for hunk in hunks)
            used, count = used | added, count + 1
    known = set(re.findall(r"^    case (\w+)$", read(os.path.join(SOURCES, ENUM)), re.M))
    if known != used:
        sys.exit(f"mutate: a case without a mutation, or a mutation without a case: {', '.join(sorted(known ^ used))}")
    changed = {}
    for source, changes in by_source.items():
        if not os.path.isfile(source):
            sys.exit(f"mutate: mutation {', '.join(changes[0][0])}: there is no file {source}")
        changed[source] = with_switches(mutate(source, "\n" + read(source), changes)[1:])
    for path in files_below(SOURCES):
        if os.path.exists(path):
            sys.exit(f"mutate: {SOURCES}/{path} would replace {path}")
        changed[path] = read(os.path.join(SOURCES, path))
    if "--check" not in sys.argv[1:]:
        write(changed)
    print(f"mutate: {count} mutations of {len(by_source)} files, {len(known)} switches")


def write(changed):
    """Makes the copy. Only a file whose content differs is written, so that the next build is incremental."""
    listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], text=True).split("\0")
    # The resolved versions are not in git. The copy must be built with the same ones.
    paths = {path for path in listed + ["Package.resolved"] if os.path.isfile(path)} | set(changed)
    for path in paths:
        target = os.path.join(COPY, path)
        if path in changed:
            data = changed[path].encode()
        else:
            with open(path, "rb") as file:
                data = file.read()
        if os.path.isfile(target):
            with open(target, "rb") as file:
                if file.read() == data:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)
        if os.path.exists(path):
            shutil.copymode(path, target)
    for path in files_below(COPY):
        if path not in paths and path != "Package.resolved":
            os.remove(os.path.join(COPY, path))


main()
