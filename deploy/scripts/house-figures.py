#!/usr/bin/env python3
"""Measures the code base: sizes, types over several files, text. Prints one row for each figure.

Usage: deploy/scripts/house-figures.py [--list FIGURE]     lists the places of clauses, verbs, types or columns
       deploy/scripts/house-figures.py --check             fails on what must stay at zero
"""
import collections
import os
import re
import statistics
import subprocess
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
FILES = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], text=True).split("\n")
FILES = [f for f in FILES if f and os.path.exists(f)]
SWIFT = [f for f in FILES if f.endswith(".swift") and not f.endswith(".pb.swift")]
SOURCES = [f for f in SWIFT if not f.startswith("Tests/")]
TESTS = [f for f in SWIFT if f.startswith("Tests/")]
MARKS = {".swift": "//", ".sql": "--", ".proto": "//", ".js": "//", ".sh": "#", ".py": "#"}
# "What the device has …", "Who …", "of what was …": a clause that stands for a noun.
CLAUSE = re.compile(r"\b(what|whatever|who|whoever|whom|nobody|somebody)\b", re.I)
VERBS = re.compile(r"\bfunc (take|note|tell|settle)\b")


def text(path):
    with open(path, encoding="utf8", errors="replace") as file:
        return file.read()


def prose(path):
    """Yields the lines of a file that people read: of code the comments, of a document all but examples."""
    suffix = os.path.splitext(path)[1]
    if suffix == ".md" and not path.endswith(".zh.md"):
        example = False
        for number, line in enumerate(text(path).split("\n"), 1):
            if line.startswith("```"):
                example = not example
            elif not example:
                yield number, line
    elif suffix in MARKS:
        mark = MARKS[suffix]
        for number, line in enumerate(text(path).split("\n"), 1):
            at = line.find(mark)
            if at >= 0 and not (mark == "//" and line[at - 1:at] == ":"):
                yield number, line[at:]


def types():
    """Lines and stored properties of each type, counted over its extension files."""
    lines, stored = collections.Counter(), collections.Counter()
    for path in SOURCES:
        name = None
        for line in text(path).split("\n"):
            found = re.match(r"(?:[a-z@()]+ )*(?:struct|class|enum|actor|protocol|extension) ([A-Z]\w*)", line)
            if found:
                name = found.group(1)
            if name:
                lines[name] += 1
                if re.match(r" {4}(?:[a-z()]+ )*(?:let|var) \w+[^{]*$", line) and " static " not in line:
                    stored[name] += 1
            if line == "}":
                name = None
    return lines, stored


def spread(paths):
    counts = sorted(text(p).count("\n") for p in paths)
    return f"{statistics.median(counts):.0f}, {counts[len(counts) * 9 // 10]}, {counts[-1]}"


def main():
    clauses = [f"{f}:{n}: {l.strip()}" for f in FILES for n, l in prose(f) if CLAUSE.search(l)]
    verbs = [f"{f}: {l.strip()}" for f in SOURCES for l in text(f).split("\n") if VERBS.search(l)]
    lines, stored = types()
    large = [f"{name}: {count} lines" for name, count in lines.most_common() if count > 600]
    wide = [f"{name}: {count}" for name, count in stored.most_common() if count > 12]
    columns = [f"{f}: {l.strip()}" for f in SOURCES for l in text(f).split("\n")
               if re.search(r"\brow\.\w+\(\d+\)", l)]
    lists = {"clauses": clauses, "verbs": verbs, "types": large + wide, "columns": columns}
    if len(sys.argv) == 3 and sys.argv[1] == "--list":
        print("\n".join(lists[sys.argv[2]]))
        return
    switches = sum(text(f).count("KnownBad") for f in SOURCES)
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(large + columns) or ("a test-only branch in a source" if switches else 0))
    commits = subprocess.check_output(["git", "log", "--format=%s%x00%b%x01"], text=True).split("\x01")
    commits = [c.strip("\n").split("\x00") for c in commits if c.strip()]
    print("| figure | value |\n|---|---|")
    for name, value in [
        ("Swift files / tracked files", f"{len(SWIFT)} / {len(FILES)}"),
        ("source lines per file: median, p90, max", spread(SOURCES)),
        ("source files of at most 15 lines", sum(text(f).count("\n") <= 15 for f in SOURCES)),
        ("test lines per file: median, p90, max", spread(TESTS)),
        ("types over 600 lines over all their files", len(large)),
        ("types with more than 12 stored properties", len(wide)),
        ("positional column reads", len(columns)),
        ("test-only branches in sources", switches),
        ("lines with a clause of what or who", len(clauses)),
        ("functions named take, note, tell or settle", len(verbs)),
        ("commits without a body", f"{sum(not c[1].strip() for c in commits)} of {len(commits)}"),
        ("subjects over 72 characters", sum(len(c[0]) > 72 for c in commits)),
    ]:
        print(f"| {name} | {value} |")


main()
