#!/usr/bin/env bash
# Whether a push still takes no more than deploy/thresholds.json allows: counts of allocations, frames, message bodies,
# wake-ups, statements, bytes; no times. On a stack of its own, which is gone afterwards.
#   check_load.sh [--write ROUNDS]     --write sets the ceilings anew, 20 % above the median of so many runs
# MSS_STACK_CONFIGURATION says which build it is for: release, which is built, or debug, which must have been.
set -euo pipefail
cd "$(dirname "$0")/../.."
options=()
case ${1:-} in
'') ;;
--write) options=(--write-thresholds "${2:?how many runs}") ;;
*) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
esac
folder=$(mktemp -d)
export MSS_STACK_FOLDER="$folder/stack" MSS_STACK_COUNTING="$folder/count_allocations.so"
stop() {
    deploy/down --wipe > /dev/null
    rm -rf "$folder"
}
trap stop EXIT
# Ports in a row that nothing uses now.
port=$(python3 - <<'PYTHON'
import random, socket
def free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
while True:
    first = random.randrange(20000, 30000)
    if all(free(first + offset) for offset in range(23)):
        print(first)
        break
PYTHON
)
export MSS_STACK_API_PORT=$port MSS_STACK_DEVICE_PORT=$((port + 1)) MSS_STACK_CONSOLE_PORT=$((port + 2)) \
    MSS_STACK_POSTGRES_PORT=$((port + 3)) MSS_STACK_RABBITMQ_PORT=$((port + 4)) MSS_STACK_TENANT_PORT=$((port + 7)) \
    MSS_STACK_HEALTH_PORT=$((port + 8))
"${CC:-cc}" -O2 -Wall -shared -fPIC -o "$MSS_STACK_COUNTING" deploy/bench/count_allocations.c
deploy/up --detach > "$folder/up.log" 2>&1 || { cat "$folder/up.log" >&2; exit 69; }
MSS_CONFIG_FILE="$MSS_STACK_FOLDER/mssctl.json" ".build/${MSS_STACK_CONFIGURATION:-release}/mssctl" load \
    --check deploy/thresholds.json "${options[@]}" --stack "$MSS_STACK_FOLDER" --ca "$MSS_STACK_FOLDER/tls/ca.pem" \
    --api "127.0.0.1:$MSS_STACK_API_PORT" --gateway "127.0.0.1:$MSS_STACK_DEVICE_PORT"
