#!/usr/bin/env bash
# Sends mutated requests to the API and to a strict parser (h11): where the two differ in the number of requests, a
# proxy in front might differ too, and a request could be smuggled past it.
#   smuggling.sh [CASES]     on the local stack (deploy/up --detach); 5,000 by default
# The seed is fixed (SEED), so that a finding comes again. h11 is installed under .local/.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=$PWD/.local/smuggling
mkdir -p .local
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c "import h11" 2> /dev/null ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check "h11==0.16.0" >&2
exec "$venv/bin/python" deploy/bench/smuggling.py "${MSS_STACK_API_PORT:-7080}" "${1:-5000}" "${SEED:-20261121}"
