#!/usr/bin/env bash
# Whether pushes and connects still take no more than deploy/thresholds.json allows: counts of allocations, sends,
# frames, bodies, wake-ups, statements, bytes; no times. On a stack of its own, which is gone afterwards.
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
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
export MSS_STACK_COUNTING="$folder/count_calls.so"
"${CC:-cc}" -O2 -Wall -shared -fPIC -o "$MSS_STACK_COUNTING" deploy/bench/count_calls.c
# shellcheck disable=SC2119 # as deploy/up does by itself
start_stack
load --check deploy/thresholds.json "${options[@]}"
