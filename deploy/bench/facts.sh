#!/usr/bin/env bash
# How many facts an aggregator folds in a second: facts of pushes as writers and gateways tell them wait at the broker,
# then the aggregator is started.
#   facts.sh [PUSHES]     on servers of its own; 200,000 pushes by default, of three facts each
set -euo pipefail
cd "$(dirname "$0")/../.."
pushes=${1:-200000}
swift build -c release --product mssctl
swift build -c release --product mss-statistics
swift build --build-tests --explicit-target-dependency-import-check error
# shellcheck source=deploy/bench/private.sh
source deploy/bench/private.sh
start_postgres
start_rabbitmq
as_owner psql -qX <<'SQL'
INSERT INTO channel (channel_id, instance_id, kind, target, biz_type) OVERRIDING SYSTEM VALUE
SELECT n, 'bench', 0, 'user-' || n, 'UCHAT' FROM generate_series(1, 100000) n;
SQL
MSS_BENCH_AMQP_PORT=$amqp_port MSS_BENCH_PUSHES=$pushes swift test --skip-build --filter FactBench |
    grep -E "^BENCH|✘|error" | sed 's/^BENCH //'
begin=$(date +%s%N)
MSS_POSTGRES_USER=statistics MSS_AMQP_USER=statistics MSS_AMQP_PASSWORD=bench MSS_HEALTH_PORT=$health_port \
    .build/release/mss-statistics > "$folder/statistics.log" 2>&1 &
aggregator=$!
bench_pids+=("$aggregator")
folded() { curl -s "127.0.0.1:$health_port/metrics" | sed -nE 's/^mss_statistics_facts_folded_total ([0-9]+).*/\1/p'; }
count=0
while [ "$count" -lt $((3 * pushes)) ]; do
    sleep 0.2
    count=$(folded || true)
    count=${count:-0}
done
seconds=$(($(date +%s%N) - begin))
ticks=$(awk '{ print $14 + $15 }' "/proc/$aggregator/stat")
awk -v f="$count" -v s="$seconds" -v t="$ticks" 'BEGIN {
    printf "%d facts folded in %.1f s: %.0f a second; %.1f s of the aggregator'"'"'s own processor time\n",
        f, s / 1e9, f / (s / 1e9), t / 100 }'
as_owner psql -qAtX -c "SELECT 'pushes ' || sum(pushes) || ', arrivals ' || sum(arrivals) FROM statistics_day"
