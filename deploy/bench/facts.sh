#!/usr/bin/env bash
# How many facts an aggregator folds in a second: stored pushes wait in the database, and their facts, as gateways tell
# them, at the broker; then the aggregator is started.
#   facts.sh [PUSHES] [RATE]     on servers of its own; 200,000 pushes by default, of two facts each
# With a rate, so many pushes a second are stored meanwhile in the same database, ten to a transaction.
set -euo pipefail
cd "$(dirname "$0")/../.."
pushes=${1:-200000} rate=${2:-0}
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
# In transactions of 100, as a writer stores them.
as_owner psql -qX -v pushes="$pushes" <<'SQL'
SELECT set_config('bench.pushes', :'pushes', false) \gset
DO $$
BEGIN
    FOR start IN 0..(current_setting('bench.pushes')::bigint - 1) BY 100 LOOP
        INSERT INTO oplog (channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary,
            operating_system, minimum_version, maximum_version, share_start, share_size, valid_until, created_at)
        SELECT n % 100000 + 1, n, n::text, n, '{"name":"James"}', false, 0, '', '', 0, 10000, now() + interval '1 day',
            now()
        FROM generate_series(start, least(start + 99, current_setting('bench.pushes')::bigint - 1)) n;
        COMMIT;
    END LOOP;
END $$;
SQL
MSS_BENCH_AMQP_PORT=$amqp_port MSS_BENCH_PUSHES=$pushes swift test --skip-build --filter FactBench |
    grep -E "^BENCH|✘|error" | sed 's/^BENCH //'
if [ "$rate" -gt 0 ]; then
    as_owner psql -qX <<'SQL'
INSERT INTO instance (instance_id, name, is_enabled, validator_url, verdict_lifetime_ms, retention)
    VALUES ('bench', '', true, '', 0, interval '30 days');
INSERT INTO sync_configuration (instance_id, biz_type, description, kind, is_multi_device, is_persistent, threshold,
    checks_session, is_online, is_immediate) VALUES ('bench', 'UCHAT', '', 0, true, true, 0, false, true, false);
SQL
    cat > "$folder/push.sql" <<'SQL'
SELECT count(*) FROM append_oplogs(
    '{bench}', '{0}', '{UCHAT}', array_fill(1, '{10}'),
    ARRAY(SELECT 'user-' || n || '-' || (random() * 9999)::integer FROM generate_series(1, 10) n),
    array_fill(1, '{10}'), '{1,2,3,4,5,6,7,8,9,10}', array_fill(1, '{10}'),
    ARRAY(SELECT gen_random_uuid()::text FROM generate_series(1, 10)),
    ARRAY(SELECT (random() * 1e15)::bigint FROM generate_series(1, 10)),
    array_fill('{"name":"James"}'::bytea, '{10}'), array_fill(false, '{10}'), array_fill(0::smallint, '{10}'),
    array_fill(''::text, '{10}'), array_fill(''::text, '{10}'), array_fill(0::smallint, '{10}'),
    array_fill(10000::smallint, '{10}'), array_fill(0::bigint, '{10}'), array_fill(''::text, '{10}'),
    array_fill(''::text, '{10}'));
SQL
    as_owner "$(printf '%s\n' /usr/lib/postgresql/*/bin/pgbench | tail -n 1)" -n -c 4 -R $((rate / 10)) -T 600 \
        -f "$folder/push.sql" mss > "$folder/pgbench.log" 2>&1 &
    bench_pids+=($!)
fi
begin=$(date +%s%N)
MSS_POSTGRES_USER=statistics MSS_AMQP_USER=statistics MSS_AMQP_PASSWORD=bench MSS_HEALTH_PORT=$health_port \
    .build/release/mss-statistics > "$folder/statistics.log" 2>&1 &
aggregator=$!
bench_pids+=("$aggregator")
total() { # counter
    local count
    count=$(curl -s "127.0.0.1:$health_port/metrics" | sed -nE "s/^$1_total ([0-9]+).*/\1/p" || true)
    echo "${count:-0}"
}
count=0
while [ "$count" -lt $((2 * pushes)) ] || [ "$(total mss_statistics_pushes_counted)" -lt "$pushes" ]; do
    sleep 0.2
    count=$(total mss_statistics_facts_folded)
done
seconds=$(($(date +%s%N) - begin))
ticks=$(awk '{ print $14 + $15 }' "/proc/$aggregator/stat")
awk -v f="$count" -v s="$seconds" -v t="$ticks" 'BEGIN {
    printf "%d facts folded and their pushes counted in %.1f s: %.0f a second; ", f, s / 1e9, f / (s / 1e9)
    printf "%.1f s of the aggregator'"'"'s own processor time\n", t / 100 }'
[ "$rate" = 0 ] || as_owner psql -qAtX -v s="$seconds" -v pushes="$pushes" <<'SQL'
SELECT 'meanwhile ' || round((count(*) - :pushes) / (:s / 1e9)) || ' pushes a second were stored' FROM oplog;
SQL
as_owner psql -qAtX -c "SELECT 'pushes ' || sum(pushes) || ', arrivals ' || sum(arrivals) FROM statistics_day"
