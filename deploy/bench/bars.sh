#!/usr/bin/env bash
# The rates of the service on this machine, load generator included: the table of deploy/load/Measurements.md. Release
# build, a stack of its own that is gone afterwards, about ten minutes for each round.
#   bars.sh [--tls] [ROUNDS]     medians of so many rounds (3); --tls: TLS also between the processes and both servers
# The machine should do nothing else meanwhile.
set -euo pipefail
cd "$(dirname "$0")/../.."
links=(--plain)
rounds=3
while [ $# -gt 0 ]; do
    case $1 in
    --tls) links=() ;;
    [1-9]) rounds=$1 ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
    esac
    shift
done
[ "$(ulimit -n)" -ge 20000 ] || ulimit -n 20000
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
start_stack "${links[@]}"

run() { # NAME OPTION…: one load and its report
    local name=$1
    shift
    load "$@" --report "$folder/$name.$round.json" > "$folder/$name.log" 2>&1 ||
        { echo "bars.sh: $name has failed:" >&2; tail -n 20 "$folder/$name.log" >&2; }
}
# Sessions of a gateway that has had none before.
round=1
run idle --scenario deploy/load/idle.json --seconds 10
for round in $(seq "$rounds"); do
    run at-1000 --scenario deploy/load/single.json --rate 1000 --seconds 20
    run at-3000 --scenario deploy/load/single.json --rate 3000 --connections 500 --seconds 20 --no-resources
    run highest --scenario deploy/load/single.json --window 1000 --connections 500 --seconds 20 --no-resources
    run batch --scenario deploy/load/batch.json --window 4000 --seconds 20 --no-resources
    run backlog --scenario deploy/load/backlog.json --devices 1000 --no-resources
    run connects --scenario deploy/load/connects.json --no-resources
    run broadcast --scenario deploy/load/broadcast.json --no-resources
    echo "round $round of $rounds is done" >&2
done
deploy/down > /dev/null
python3 deploy/bench/disk.py "$folder"
python3 deploy/bench/bars.py "$folder" "$rounds"
