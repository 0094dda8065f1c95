#!/usr/bin/env bash
# Many TLS devices on several gateways of one machine: all connected, pushed to one by one and at once. Release build, a
# stack of its own that is gone afterwards, about five minutes. Fails when a push is lost or a connection falls.
#   many-devices.sh [DEVICES [GATEWAYS]]     40000 on 3, each of which may hold about 19,000
set -euo pipefail
cd "$(dirname "$0")/../.."
devices=${1:-40000} gateways=${2:-3}
[ "$(ulimit -n)" -ge 20000 ] || ulimit -n 20000
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
start_stack --plain --scale gateway="$gateways"
addresses=$(seq -f "127.0.0.1:%.0f" -s , "$MSS_STACK_DEVICE_PORT" $((MSS_STACK_DEVICE_PORT + gateways - 1)))
# Each generator holds as many devices as its open files allow.
parts=$(((devices + 14999) / 15000))
generators=()
for part in $(seq "$parts"); do
    load --scenario deploy/load/many-devices.json --devices "$devices" --part "$part/$parts" --run-name devices \
        --gateway "$addresses" --no-resources --report "$folder/part-$part.json" > "$folder/part-$part.log" 2>&1 &
    generators+=($!)
done
while kill -0 "${generators[0]}" 2> /dev/null; do
    sleep 10
    memory Pss >> "$folder/samples"
done
failed=0
for generator in "${generators[@]}"; do
    wait "$generator" || failed=1
done
cat "$folder"/part-*.log >&2
[ "$failed" = 1 ] || python3 deploy/bench/many_devices.py "$folder/samples" "$folder"/part-*.json
exit $failed
