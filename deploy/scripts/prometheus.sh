#!/usr/bin/env bash
# Unpacks Prometheus into a folder of its own, without making a service of it, and prints where its programs are.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$PWD/.local/prometheus
if [ ! -x "$folder/usr/bin/promtool" ]; then
    download=$(mktemp -d)
    trap 'rm -rf "$download"' EXIT
    fetch() { (cd "$download" && apt-get download prometheus) >&2; }
    fetch || { apt-get update >&2 && fetch; }
    dpkg-deb -x "$download"/prometheus_*.deb "$folder"
fi
echo "$folder/usr/bin"
