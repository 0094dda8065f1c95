#!/usr/bin/env bash
# Installs the browser and, in a folder of its own, the browser's driver for the tests; prints the driver's Python. The
# browser is Chromium without windows, which takes about half of the processor time of Chromium with --headless.
set -euo pipefail
cd "$(dirname "$0")/../.."
deploy/scripts/packages.sh chromium-headless-shell fonts-wqy-microhei nodejs python3-venv >&2
venv=.local/browser
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c "import playwright, websockets" 2> /dev/null ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check "playwright>=1.40" "websockets>=12" >&2
echo "$PWD/$venv/bin/python"
