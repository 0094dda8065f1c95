#!/usr/bin/env bash
# Every process is replaced by SIGTERM, one after the other and again and again, while pushes go to devices: two each of
# ingest, writer and gateway, the validator, the statistics and the console. No push may be lost or doubled, and every
# call must get an answer: stored (NOT_ONLINE: while no device was there), or 503, which attempted nothing and says when
# to come again. Release build, root, a stack of its own.
#   rolling.sh [RATE [SECONDS]]     500 pushes a second for 180 s
set -euo pipefail
cd "$(dirname "$0")/../.."
rate=${1:-500} seconds=${2:-180}
# shellcheck source=deploy/faults/machine.sh
source deploy/faults/machine.sh
start_stack --scale ingest=2 --scale writer=2 --scale gateway=2
cat > "$folder/rolling.json" <<JSON
{"name": "rolling", "users": 400, "devicesPerUser": 2, "steps": [
    {"do": "connect"}, {"do": "push", "rate": $rate, "seconds": $seconds}]}
JSON
load --scenario "$folder/rolling.json" --no-resources --report "$folder/report.json" \
    --api "127.0.0.1:$MSS_STACK_API_PORT,127.0.0.1:$((MSS_STACK_API_PORT + 1))" \
    --gateway "127.0.0.1:$MSS_STACK_DEVICE_PORT,127.0.0.1:$((MSS_STACK_DEVICE_PORT + 1))" > "$folder/load.log" 2>&1 &
generator=$!

replace() { # NAME HEALTH_PORT: ends it, and waits until its successor is ready
    local child
    child=$(cat "$MSS_STACK_FOLDER/run/$1.child")
    kill -TERM "$child"
    for _ in $(seq 400); do
        if [ "$(cat "$MSS_STACK_FOLDER/run/$1.child")" != "$child" ] &&
            curl -fsS "http://127.0.0.1:$2/readyz" > /dev/null 2>&1; then
            return
        fi
        sleep 0.1
    done
    complain "$1 was not ready again after 40 s"
}

replaced=0
while true; do
    while read -r name port; do
        kill -0 "$generator" 2> /dev/null || break 2
        replace "$name" "$port"
        replaced=$((replaced + 1))
    done < "$MSS_STACK_FOLDER/health"
done
correct=yes
wait "$generator" || correct=''
cat "$folder/load.log"
echo "$replaced processes replaced"
[ -n "$correct" ] || complain "a push was lost or doubled"
python3 - "$folder/report.json" <<'PYTHON' || complain "a call had no proper answer"
import json, sys
streams = json.load(open(sys.argv[1]))["steps"][1]["streams"]
sys.exit(not set(streams[0]["answers"]) <= {"SUCCESS", "NOT_ONLINE", "503 UNAVAILABLE"})
PYTHON
