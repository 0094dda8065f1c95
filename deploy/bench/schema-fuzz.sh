#!/usr/bin/env bash
# Makes allowed and forbidden calls from the API's description, and compares each answer with the description.
#   schema-fuzz.sh [CASES]     on the local stack (deploy/up --detach); at least 20,000 by default
# The seed is fixed (SEED), so that a finding comes again. Schemathesis is installed under .local/.
set -euo pipefail
cd "$(dirname "$0")/../.."
cases=${1:-20000} seed=${SEED:-20261121}
url=http://127.0.0.1:${MSS_STACK_API_PORT:-7080}
bench=$PWD/deploy/bench venv=$PWD/.local/schema-fuzz
mkdir -p .local
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c "import schemathesis" 2> /dev/null ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==4.32.5" >&2
fuzz="$venv/bin/schemathesis"
export SCHEMATHESIS_HOOKS="$bench/schema_checks.py"
cd "$venv" # where it leaves its notes
# The six operations take equal parts; the calls of the fixed phases come on top.
"$fuzz" --config-file "$bench/schemathesis.toml" run "$url/openapi.json" \
    --max-examples $(((cases + 5) / 6)) --seed "$seed" --checks all --continue-on-failure \
    --suppress-health-check all --generation-database none --request-timeout 30
