#!/usr/bin/env bash
# How long until every process goes by a change made in the console, while pushes run.
#   in_force.sh [RATE] [ROUNDS]     on the local stack (deploy/up --detach --scale ingest=2 --scale gateway=2); 300 a
#                                   second and 20 rounds of four changes by default
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/scripts/stack.sh
source deploy/scripts/stack.sh
rate=${1:-300} rounds=${2:-20}
"$binaries/mssctl" load --rate "$rate" --devices 100 --seconds $((20 + rounds * 2)) --api "127.0.0.1:$api_port" \
    --gateway "127.0.0.1:$device_port" > "$stack/run/in-force.log" 2>&1 &
load=$!
sleep 5
apis=("127.0.0.1:$api_port") health=()
is_running ingest-2 && apis+=("127.0.0.1:$((api_port + 1))")
# All that go by the control data; writers and the aggregator read it with each statement.
while read -r name port; do
    [[ "$name" =~ ^(writer|statistics) ]] || health+=("127.0.0.1:$port")
done < "$stack/health"
invitation=$("$binaries/mssctl" console invite --console "http://127.0.0.1:$console_port")
python3 deploy/bench/in_force.py --invitation "$invitation" --api "${apis[@]}" --health "${health[@]}" \
    --rounds "$rounds"
kill -0 "$load" || { echo "the load ended before" >&2; exit 75; }
wait "$load" || { cat "$stack/run/in-force.log" >&2; exit 1; }
grep '^POST to device' "$stack/run/in-force.log"
