#!/usr/bin/env bash
# Installs the browser driver of the tests, in a folder of its own, and prints its Python.
set -euo pipefail
cd "$(dirname "$0")/../.."
deploy/scripts/packages.sh chromium fonts-wqy-microhei nodejs python3-venv >&2
venv=.local/browser
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c "import playwright, websockets" 2> /dev/null ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check "playwright>=1.40" "websockets>=12" >&2
echo "$PWD/$venv/bin/python"
