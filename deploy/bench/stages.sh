#!/usr/bin/env bash
# The parts of a push's latency between processes, from a network capture, on a stack of its own, which is gone
# afterwards. Needs the right to capture on the loopback interface.
#   stages.sh [RATE]
# RATE pushes a second (1000) for 20 s; the capture is of 5 s in the middle. Prints the report of the load, and for each
# stage its percentiles in milliseconds.
set -euo pipefail
rate=${1:-1000}
if [ $# -gt 1 ] || ! [[ $rate =~ ^[0-9]+$ ]]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 64
fi
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh

deploy/scripts/packages.sh --run tcpdump
start_stack --plain
(
    sleep 9
    timeout 5 tcpdump -i lo -s 0 -B 65536 --time-stamp-precision=nano -w "$folder/capture" \
        "tcp port $MSS_STACK_API_PORT or tcp port $MSS_STACK_RABBITMQ_PORT" 2> "$folder/tcpdump.log"
) &
capture=$!
load --rate "$rate" --seconds 20 --no-resources
# tcpdump ends by its time-out.
wait "$capture" || [ $? = 124 ] || { cat "$folder/tcpdump.log" >&2; exit 70; }
python3 deploy/bench/stages.py "$folder/capture" "$MSS_STACK_API_PORT" "$MSS_STACK_RABBITMQ_PORT"
