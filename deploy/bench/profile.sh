#!/usr/bin/env bash
# Where the processor's time goes, by process and kind of work, under a load of single pushes. Release build, a stack of
# its own that is gone afterwards; as root, with perf (apt-get install linux-perf).
#   profile.sh [--top] OPTION…     of mssctl load: --rate 1000, --window 1000; --top: also the heaviest functions
set -euo pipefail
cd "$(dirname "$0")/../.."
top=''
[ "${1:-}" != --top ] || { top=--top; shift; }
command -v perf > /dev/null || { echo "profile.sh: perf is needed: apt-get install linux-perf" >&2; exit 69; }
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
start_stack --plain
load --scenario deploy/load/single.json --connections 500 --seconds 20 --no-resources "$@" > "$folder/load.log" 2>&1 &
generator=$!
sleep 8
perf record -a -e cpu-clock -F 1999 -o "$folder/perf.data" -- sleep 10 > /dev/null 2>&1
for child in "$MSS_STACK_FOLDER"/run/*.child; do
    echo "$(cut -d' ' -f1 "$child") $(basename "$child" .child)"
done > "$folder/names"
ps -eo pid=,ppid= > "$folder/parents"
pgrep -P "$$" -f 'mssctl load' | sed 's/$/ load/' >> "$folder/names"
wait "$generator" || { cat "$folder/load.log" >&2; exit 1; }
grep -E 'pushes;|POST to device' "$folder/load.log"
perf script -i "$folder/perf.data" -F pid,ip,sym,dso 2> /dev/null |
    python3 deploy/bench/profile.py "$folder/names" "$folder/parents" $top
