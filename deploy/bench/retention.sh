#!/usr/bin/env bash
# The cost of retention: the latency of pushes while partitions of a million oplogs are removed, beside the latency
# without, and the disk space of a million oplogs.
#   retention.sh [PAYLOAD_BYTES]     on the local stack (deploy/up --detach); 100 by default
set -euo pipefail
cd "$(dirname "$0")/../.."
bytes=${1:-100}
# shellcheck source=deploy/bench/database.sh
source deploy/bench/database.sh
load() { .build/release/mssctl load --rate 1000 --seconds 15 2>&1 | grep -E "POST to device|lost|correct"; }

echo "filling four weeks of the past with 250,000 oplogs each"
psql -v bytes="$bytes" <<'SQL' > /dev/null
SELECT set_config('bench.bytes', :'bytes', false);
SET ROLE mss_owner;
DO $$
DECLARE monday timestamptz; name text;
BEGIN
    FOR week IN 7..10 LOOP
        monday := (date_trunc('week', now() AT TIME ZONE 'UTC') - make_interval(weeks => week)) AT TIME ZONE 'UTC';
        name := 'oplog_' || to_char(monday AT TIME ZONE 'UTC', 'YYYYMMDD');
        EXECUTE format('CREATE TABLE delivery.%s PARTITION OF oplog FOR VALUES FROM (%L) TO (%L)',
            name, monday, monday + interval '7 days');
        -- By the database's first transaction, so neither the sweep nor the statistics take them for new ones.
        EXECUTE format('INSERT INTO oplog (
                channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary, operating_system,
                minimum_version, maximum_version, share_start, share_size, valid_until, created_at, written_by)
            SELECT n %% 10000, week, ''bench-'' || n, n,
                convert_to(repeat(''x'', %s), ''UTF8''), false, 0, '''', '''', 0, 10000, now(), %L, 3
            FROM generate_series(1, 250000) n, (SELECT %s AS week) w',
            current_setting('bench.bytes'), monday + interval '1 day', week);
    END LOOP;
END $$;
RESET ROLE;
CHECKPOINT;
SQL
echo "a million oplogs of $bytes bytes take $(psql -c "
    SELECT pg_size_pretty(sum(pg_total_relation_size(name::regclass))) || ', of which indexes ' ||
        pg_size_pretty(sum(pg_indexes_size(name::regclass))) FROM ended_oplog_partition")"
echo "without: " && load
echo "while four partitions are removed, one every three seconds:"
load &
measured=$!
for name in $(psql -c "SELECT name FROM ended_oplog_partition ORDER BY 1"); do
    sleep 3
    start=$(date +%s%N)
    psql -c "ALTER TABLE oplog DETACH PARTITION $name CONCURRENTLY"
    psql -c "DROP TABLE $name"
    echo "  $name gone in $((($(date +%s%N) - start) / 1000000)) ms"
done
wait "$measured"
