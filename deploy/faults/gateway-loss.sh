#!/usr/bin/env bash
# One of three gateways is killed under pushes and stays away: its third of the devices must be back on the others
# within 120 s with nothing lost, and pushes to devices of the others may have a p99 of at most three times the one
# before. Release build, root, a stack of its own that is gone afterwards; about eight minutes.
#   gateway-loss.sh [DEVICES]     20000
set -euo pipefail
cd "$(dirname "$0")/../.."
devices=${1:-20000}
[ "$(ulimit -n)" -ge 20000 ] || ulimit -n 20000
# shellcheck source=deploy/faults/machine.sh
source deploy/faults/machine.sh
others=$((devices / 3))
crowd=$((devices - others))
generators=()
start_stack --plain --scale gateway=3
stop_stack() {
    kill -KILL "${generators[@]}" 2> /dev/null || true
    deploy/down > /dev/null
    rm -rf "$folder"
}
# The crowd lies half on the one that will go and half on the two others, on which `others` lie alone.
first="127.0.0.1:$MSS_STACK_DEVICE_PORT" second="127.0.0.1:$((MSS_STACK_DEVICE_PORT + 1))"
third="127.0.0.1:$((MSS_STACK_DEVICE_PORT + 2))"
cat > "$folder/crowd.json" <<JSON
{"name": "crowd", "users": $crowd, "steps": [
    {"do": "connect", "concurrency": 70}, {"do": "push", "rate": 200, "seconds": 330}]}
JSON
cat > "$folder/others.json" <<JSON
{"name": "others", "users": $others, "steps": [
    {"do": "connect", "concurrency": 70}, {"do": "push", "name": "before", "rate": 100, "seconds": 60},
    {"do": "push", "name": "loss", "rate": 100, "seconds": 150}]}
JSON

generate() { # NAME GATEWAYS
    load --scenario "$folder/$1.json" --no-resources --report "$folder/$1-report.json" --gateway "$2" \
        > "$folder/$1.log" 2>&1 &
    generators+=($!)
}

connected() { # COUNT GATEWAY…: so many devices in all are on these
    local sum=0 number found
    for number in "${@:2}"; do
        found=$(curl -fsS "http://127.0.0.1:$((MSS_STACK_HEALTH_PORT + 10 + number))/metrics" |
            awk '$1 ~ /^mss_gateway_connections/ { sum += $2 } END { print sum + 0 }')
        sum=$((sum + found))
    done
    [ "$sum" -ge "$1" ]
}

await_connected() { # SECONDS COUNT GATEWAY…
    for _ in $(seq "$1"); do
        ! connected "${@:2}" || return 0
        sleep 1
    done
    complain "not all devices were connected after $1 s"
}

generate crowd "$third,$first,$third,$second"
await_connected 300 "$crowd" 1 2 3
generate others "$first,$second"
await_connected 300 "$devices" 1 2 3
# The step `before` is over by then.
sleep 75
kill -KILL "$(cut -d' ' -f1 "$MSS_STACK_FOLDER/run/gateway-3.supervisor")"
kill -KILL "$(cat "$MSS_STACK_FOLDER/run/gateway-3.child")"
fell=$(now)
await_connected 120 "$devices" 1 2
echo "back after: $(python3 -c "print(round($(now) - $fell))") s"
failed=''
for generator in "${generators[@]}"; do wait "$generator" || failed=yes; done
cat "$folder/crowd.log" "$folder/others.log"
[ -z "$failed" ] || complain "a push was lost or doubled"
python3 - "$folder/others-report.json" <<'PYTHON' || complain "pushes to devices of the others were too slow"
import json, sys
before, loss = (step["streams"][0]["postToDevice"]["p99"] for step in json.load(open(sys.argv[1]))["steps"][1:])
print(f"pushes to devices of the others, p99: {before:.1f} ms before, {loss:.1f} ms with the loss")
sys.exit(loss > 3 * before)
PYTHON
