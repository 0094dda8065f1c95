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
# Each generator holds what it may.
parts=$(((devices + 14999) / 15000))
generators=()
for part in $(seq "$parts"); do
    measured=()
    [ "$part" = 1 ] || measured=(--no-resources)
    load --scenario deploy/load/many-devices.json --devices "$devices" --part "$part/$parts" --run-name many \
        --gateway "$addresses" "${measured[@]}" --report "$folder/part-$part.json" > "$folder/part-$part.log" 2>&1 &
    generators+=($!)
done
failed=0
for part in $(seq "$parts"); do
    wait "${generators[$((part - 1))]}" || { failed=1; tail -n 20 "$folder/part-$part.log" >&2; }
done
python3 deploy/bench/many_devices.py "$folder"/part-*.json
exit $failed
