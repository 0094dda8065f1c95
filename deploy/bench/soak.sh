#!/usr/bin/env bash
# A load held for minutes: latency, memory and the delay of figures, minute by minute, as a table of Markdown. Release
# build, a stack of its own that is gone afterwards. Fails when a push is lost, or when a minute's p99 is above three
# times that of the median minute. Each minute ends with all its pushes delivered, acknowledged and recorded.
#   soak.sh RATE [MINUTES]     single pushes a second; 10 minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
rate=${1:?how many pushes a second} minutes=${2:-10}
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
start_stack --plain
python3 deploy/bench/soak.py scenario "$rate" "$minutes" > "$folder/soak.json"
load --scenario "$folder/soak.json" --no-resources --report "$folder/report.json" > "$folder/load.log" 2>&1 &
generator=$!
lag() { # how far the figures are behind
    PGPASSWORD=$(cat "$MSS_STACK_FOLDER/postgres/password") psql -X -qAt -h 127.0.0.1 -p "$MSS_STACK_POSTGRES_PORT" \
        -U mss mss -c "SELECT 'lag=' || round(extract(epoch FROM now() - folded_until), 1) FROM statistics_progress"
}
while kill -0 "$generator" 2> /dev/null; do
    sleep 15
    { memory Pss_Anon; lag; } >> "$folder/samples"
done
wait "$generator" || { cat "$folder/load.log" >&2; exit 1; }
python3 deploy/bench/soak.py table "$folder/report.json" "$folder/samples"
