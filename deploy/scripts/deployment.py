"""Runs the program of each described container with the environment and the files that the description gives it, and
writes the reference of the programs' settings.

deployment.py run BINARIES SECRETS FILE...   FILE: docker-compose.yml, or manifests as `helm template` prints them.
                                             SECRETS: a folder as `mssctl secrets` and certificates.sh make it, with
                                             wake-up/, the notifier's files
deployment.py links FILE...                  what manifests name in each other exists: pods by labels, ports by name
deployment.py reference BINARIES             prints Settings.md
deployment.py examples FILE FOLDER           writes NAME.json for mssctl and each process of a compose file, for
                                             mss@NAME of systemd
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import yaml

PROGRAMS = ["mss-ingest", "mss-oplog-writer", "mss-gateway", "mss-session-validator", "mss-statistics", "mss-console",
            "mss-notifier", "mss-relay"]
TOOL = "mssctl"
SYSTEMD_SECRETS = "/etc/mobile-sync-service/secrets"
# A unit sets the format of logs, health is for this machine alone, and callers' addresses are seen.
OF_CONTAINERS = {"MSS_LOG_FORMAT", "MSS_HEALTH_HOST", "MSS_HEALTH_PORT", "MSS_INGEST_SOURCE_CONNECTIONS_MAX",
                 "MSS_GATEWAY_SOURCE_CONNECTIONS_PER_SECOND"}
# A process and the tool print this when they have read every setting and every file, and there is no server.
COMPLETE = "the configuration is complete"
NO_SERVER = "the server is not reached"


class Container(NamedTuple):
    """A container that runs a program of ours."""
    where: str
    program: str
    command: list[str]
    environment: dict[str, str]
    # The path in the container of each mounted file or folder, and its copy here.
    files: dict[str, Path]


def settings(binaries: Path, program: str) -> dict[str, str]:
    """By name, what the program says that it expects."""
    text = subprocess.run([binaries / program, "--help"], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^  (MSS_[A-Z0-9_]+): (.*)$", text, re.MULTILINE))


def program(command: list[str]) -> str:
    words = " ".join(command).split()
    return next((word for word in words if word in [*PROGRAMS, TOOL]), "")


def services(file: Path, document: dict, secrets: Path) -> list[Container]:
    """Those of a compose file, without the caller's variables."""
    def text(value: object) -> str:
        return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value)).replace("$$", "$")
    found = []
    for name, service in document["services"].items():
        command = [text(word) for word in [*service.get("entrypoint", []), *service.get("command", [])]]
        mounts = [text(volume).split(":") for volume in service.get("volumes", [])]
        files = {f"/run/secrets/{secret}": secrets / Path(document["secrets"][secret]["file"]).name
                 for secret in service.get("secrets", [])}
        files |= {mount[1]: secrets / Path(mount[0]).name for mount in mounts}
        environment = {key: text(value) for key, value in service.get("environment", {}).items()}
        found.append(Container(f"{file.name}: {name}", program(command), command, environment, files))
    return found


def pods(file: Path, document: dict, secrets: Path) -> list[Container]:
    """Those of a manifest, with the secrets that deploy/manual/Install.md makes."""
    pod = (document.get("spec") or {}).get("template", {}).get("spec", {})
    folder = {one.name: one for one in secrets.iterdir() if one.is_file()} | {"authority": secrets / "ca.pem"}
    tls = {"tls.crt": secrets / "server.pem", "tls.key": secrets / "server.key"}
    known = {"mobile-sync-service": folder, "mss-wake-up": {one.name: one for one in (secrets / "wake-up").iterdir()},
             "mss-ingest-tls": tls, "mss-gateway-tls": tls, "mss-console-tls": tls}
    volumes = {volume["name"]: volume["secret"] for volume in pod.get("volumes", [])}
    found = []
    for container in pod.get("containers", []):
        files = {}
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            keys = known[volume["secretName"]]
            items = {item["path"]: item["key"] for item in volume["items"]} if "items" in volume else {
                key: key for key in keys}
            files |= {f"{mount['mountPath']}/{path}": keys[key] for path, key in items.items()}
        # The name of a pod is its only field that a setting has.
        environment = {one["name"]: one.get("value", f"{document['metadata']['name']}-0") for one in container["env"]}
        where = f"{file.name}: {document['kind']} {document['metadata']['name']}"
        command = [*container["command"], *container.get("args", [])]
        found.append(Container(where, program(command), command, environment, files))
    return found


def containers(file: Path, secrets: Path) -> list[Container]:
    found = []
    for document in filter(None, yaml.safe_load_all(file.read_text())):
        found += (services if "services" in document else pods)(file, document, secrets)
    return [container for container in found if container.program]


def start(container: Container, binaries: Path) -> str:
    """Starts the container's command where /run has its mounted files alone and no server can be reached. A process
    then only checks its settings, and the tool ends at the missing server. Returns the fault, or an empty text."""
    outside = [path for path in container.files if not path.startswith("/run/")]
    if outside:
        return f"{', '.join(outside)}: mount it under /run"
    command = container.command
    if container.program != TOOL:
        command = [*command[:-1], f"{command[-1]} config check"] if command[0] == "sh" else [
            *command, "config", "check"]
    with tempfile.TemporaryDirectory() as view:
        for path, source in container.files.items():
            if not source.exists():
                return f"{path}: neither mssctl secrets nor certificates.sh makes {source.name}"
            copy = Path(view + path.removeprefix("/run"))
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        enter = ["unshare", *user, "--mount", "--net", "sh", "-c",
                 'mount -t tmpfs -o mode=755 view /run && cp -r "$0"/. /run/ && exec "$@"', view]
        environment = container.environment | {"PATH": f"{binaries.resolve()}:/usr/bin:/bin"}
        ended = subprocess.run([*enter, *command], env=environment, capture_output=True, text=True, timeout=60)
    output = (ended.stdout + ended.stderr).strip()
    if container.program == TOOL:
        return "" if NO_SERVER in output else output
    return "" if ended.returncode == 0 and output == COMPLETE else output


def run(binaries: Path, secrets: Path, files: list[Path]) -> list[str]:
    faults = []
    for file in files:
        found = containers(file, secrets)
        for container in found:
            if fault := start(container, binaries):
                faults.append(f"{container.where}: {container.program}: {fault}")
        missing = set(PROGRAMS) - {container.program for container in found}
        faults += [f"{file.name}: nothing runs {name}" for name in sorted(missing)]
    return faults


def pod_of(document: dict) -> dict:
    """The template of a workload's pods; empty: the object has none."""
    return (document.get("spec") or {}).get("template") or {}


def port_names(document: dict) -> set[str]:
    return {port["name"] for container in pod_of(document).get("spec", {}).get("containers", [])
            for port in container.get("ports", [])}


def named_ports(document: dict) -> set[str]:
    """The ports that an object expects by name of the pods that it selects."""
    spec = document["spec"]
    match document["kind"]:
        case "Service":
            found = [port["targetPort"] for port in spec["ports"]]
        case "NetworkPolicy":
            found = [port["port"] for rule in spec["ingress"] for port in rule.get("ports", [])]
        case "PodMonitor":
            found = [endpoint["port"] for endpoint in spec["podMetricsEndpoints"]]
        case _:
            found = []
    return {port for port in found if isinstance(port, str)}


def links(file: Path) -> list[str]:
    """What schemas cannot see: an object selects pods that no workload makes, or a port that they do not have."""
    documents = list(filter(None, yaml.safe_load_all(file.read_text())))
    workloads = [document for document in documents if pod_of(document)]
    known = {(document["kind"], document["metadata"]["name"]) for document in documents}
    faults = []
    for document in documents:
        spec, where = document.get("spec") or {}, f"{document['kind']} {document['metadata']['name']}"
        selector = spec.get("selector") or spec.get("podSelector") or {}
        labels = selector.get("matchLabels", selector)
        if labels:
            chosen = [one for one in workloads if labels.items() <= pod_of(one)["metadata"]["labels"].items()]
            if not chosen:
                faults.append(f"{file.name}: {where}: no pod has the labels {labels}")
            for one in chosen:
                # A monitor takes the pods that have the port, and the migration has none.
                if (document["kind"], one["kind"]) == ("PodMonitor", "Job"):
                    continue
                for name in sorted(named_ports(document) - port_names(one)):
                    faults.append(f"{file.name}: {where}: {one['metadata']['name']} has no port {name}")
        target = spec.get("scaleTargetRef")
        if target and (target["kind"], target["name"]) not in known:
            faults.append(f"{file.name}: {where}: there is no {target['kind']} {target['name']}")
    if not any(document["kind"] == "Service" for document in documents):
        faults.append(f"{file.name}: no Service")
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


def examples(file: Path, folder: Path) -> None:
    """Settings of the processes and of the tool when all are on one machine, with secrets in SYSTEMD_SECRETS."""
    for container in services(file, yaml.safe_load(file.read_text()), Path(SYSTEMD_SECRETS)):
        values = {name: text for name, text in container.environment.items() if text and name not in OF_CONTAINERS}
        for name, text in values.items():
            values[name] = next((str(copy) + text.removeprefix(path) for path, copy in container.files.items()
                                 if text == path or text.startswith(f"{path}/")), text)
        if container.program in PROGRAMS:
            values["MSS_HEALTH_PORT"] = str(8081 + PROGRAMS.index(container.program))
        elif "MSS_AMQP_USER" not in values:
            continue  # It only migrates.
        if container.program == "mss-gateway":
            values["MSS_GATEWAY_ID"] = "gateway-1"
        target = folder / f"{container.program.removeprefix('mss-')}.json"
        target.write_text(json.dumps(values, indent=2) + "\n")


def main() -> int:
    verb, binaries, *rest = sys.argv[1:]
    if verb == "reference":
        print(reference(Path(binaries)), end="")
        return 0
    if verb == "links":
        faults = [fault for file in [binaries, *rest] for fault in links(Path(file))]
        print("\n".join(faults), end="\n" if faults else "")
        return 1 if faults else 0
    if verb == "examples":
        examples(Path(binaries), Path(rest[0]))
        return 0
    faults = run(Path(binaries), Path(rest[0]), [Path(file) for file in rest[1:]])
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main())
