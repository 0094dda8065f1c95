"""What the descriptions of containers set, held against the settings that the programs have; and their reference.

deployment.py settings BINARIES FILE...   FILE: docker-compose.yml, or manifests as `helm template` prints them
deployment.py reference BINARIES          prints Settings.md
"""

import re
import subprocess
import sys
from pathlib import Path

import yaml

PROGRAMS = ["mss-ingest", "mss-oplog-writer", "mss-gateway", "mss-session-validator", "mss-statistics", "mss-console",
            "mss-notifier", "mss-relay"]


def settings(binaries: Path, program: str) -> dict[str, str]:
    """By name, what the program says that it expects."""
    text = subprocess.run([binaries / program, "--help"], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^  (MSS_[A-Z0-9_]+): (.*)$", text, re.MULTILINE))


def described(file: Path) -> list[tuple[str, str, list[str]]]:
    """(where, program, names set) of each container that runs a program of ours."""
    found = []
    for document in yaml.safe_load_all(file.read_text()):
        for name, service in (document or {}).get("services", {}).items():
            found.append((f"{file.name}: {name}", service.get("command") or [], list(service.get("environment") or {})))
        pod = ((document or {}).get("spec") or {}).get("template", {}).get("spec", {})
        for container in pod.get("containers", []):
            where = f"{document['kind']} {document['metadata']['name']}"
            found.append((where, container["command"], [one["name"] for one in container["env"]]))
    def program(command: list[str]) -> str:
        words = " ".join(command).split()
        return next((word for word in words if word in PROGRAMS), "")
    # A command may set something itself, before it starts the program.
    return [(where, program(command), names + re.findall(r"(MSS_[A-Z_]+)=", " ".join(command)))
            for where, command, names in found if program(command)]


def check(binaries: Path, files: list[Path]) -> list[str]:
    known = {program: settings(binaries, program) for program in PROGRAMS}
    faults, programs = [], set()
    for file in files:
        for where, program, names in described(file):
            programs.add((file, program))
            for name in names:
                if name not in known[program] and name.removesuffix("_FILE") not in known[program]:
                    faults.append(f"{where}: {program} has no setting {name}")
            for name, expected in known[program].items():
                if "(required" in expected and not {name, f"{name}_FILE"} & set(names):
                    faults.append(f"{where}: {program} needs {name}")
    faults += [f"{file.name}: nothing runs {program}" for file in files for program in PROGRAMS
               if (file, program) not in programs]
    return faults


def reference(binaries: Path) -> str:
    rows: dict[str, tuple[str, list[str]]] = {}
    for program in PROGRAMS:
        for name, text in settings(binaries, program).items():
            # The purpose of the key ring differs by process.
            text = re.sub(r"--purpose \w+", "--purpose PURPOSE", text)
            rows.setdefault(name, (text, []))[1].append(program.removeprefix("mss-"))
    lines = [
        "# Settings", "",
        "Made from the programs' own `--help` (`deploy/scripts/deployment.py reference`); a test compares. A setting",
        "is an environment variable, or a member of the JSON file that `MSS_CONFIG_FILE` names; each may also come",
        "from a file, whose path `NAME_FILE` says. A process names an unknown or bad one at its start, with the form.",
        "",
        "| Setting | Expected | Default | Processes |", "|---|---|---|---|",
    ]
    for name in sorted(rows):
        text, programs = rows[name]
        match = re.fullmatch(r"(.*) \((default (.*?)|required, for example .*?|optional)(; .*)?\)", text)
        expected, default = (match[1], match[3] or match[2].split(",")[0]) if match else (text, "")
        who = "all" if len(programs) == len(PROGRAMS) else ", ".join(programs)
        if default not in ("required", "optional"):
            default = "none" if default == "…" else f"`{default}`"
        lines.append(f"| `{name}` | {expected.replace('|', chr(92) + '|')} | {default} | {who} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    verb, binaries, *files = sys.argv[1:]
    if verb == "reference":
        print(reference(Path(binaries)), end="")
        return 0
    faults = check(Path(binaries), [Path(file) for file in files])
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main())
