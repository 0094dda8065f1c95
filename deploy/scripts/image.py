#!/usr/bin/env python3
"""Writes a container image without an engine: an archive that `docker load` and `podman load` read.

image.py BASE LAYER DOCKERFILE VERSION REVISION > image.tar

BASE and LAYER are tar files: the files of the base image with the packages of the Dockerfile's steps, and the programs.
User, command and labels are those of the Dockerfile's last stage. The same files make the same bytes.
"""

import hashlib
import io
import json
import os
import re
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def settings(dockerfile, version, revision):
    """What an engine takes from the last stage."""
    stage = dockerfile.read_text().rpartition("\nFROM ")[2].replace("\\\n", " ")
    labels = dict(re.findall(r'(org\.opencontainers\.\S+)="([^"]*)"', stage))
    values = {"$VERSION": version, "$REVISION": revision}
    return {
        "User": re.search(r"^USER (.*)$", stage, re.MULTILINE)[1],
        "Cmd": json.loads(re.search(r"^CMD (.*)$", stage, re.MULTILINE)[1]),
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        "Labels": {name: values.get(value, value) for name, value in labels.items()},
    }


def main():
    base, layer, dockerfile = map(Path, sys.argv[1:4])
    version, revision = sys.argv[4:]
    seconds = int(os.environ["SOURCE_DATE_EPOCH"])
    layers = [(digest(path), path) for path in (base, layer)]
    configuration = json.dumps({
        "architecture": ARCHITECTURES[os.uname().machine], "os": "linux",
        "created": datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z"),
        "config": settings(dockerfile, version, revision),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{name}" for name, _ in layers]},
        "history": [{"created_by": "Debian"}, {"created_by": "deploy/release"}],
    }).encode()
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = json.dumps([{
        "Config": name, "RepoTags": [f"mobile-sync-service:{version}"],
        "Layers": [f"{identity}/layer.tar" for identity, _ in layers],
    }]).encode()
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        def add(path, size, file):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = size, seconds, 0o644
            archive.addfile(entry, file)

        for identity, path in layers:
            with open(path, "rb") as file:
                add(f"{identity}/layer.tar", path.stat().st_size, file)
        add(name, len(configuration), io.BytesIO(configuration))
        add("manifest.json", len(manifest), io.BytesIO(manifest))


main()
