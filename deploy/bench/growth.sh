#!/usr/bin/env bash
# The cost of a push and a connect as everything grows, on a stack of its own for each axis, which is gone afterwards.
#   growth.sh [--upto OPLOGS] [--table FILE] [AXIS…]
# Axes: configurations devices gateways writers size; all by default. Size goes up to 100 million oplogs in 10 million
# channels, which takes half an hour and 45 GB; --upto leaves out the steps above so many. --table also writes the
# tables to a file. Prints a table (Markdown) for each axis; deploy/load/README.md describes it.
set -euo pipefail
cd "$(dirname "$0")/../.."
upto=100000000 table=/dev/null axes=()
while [ $# -gt 0 ]; do
    case $1 in
    --upto) upto=${2:?how many oplogs}; shift ;;
    --table) table=$(realpath -m "${2:?which file}"); shift ;;
    configurations | devices | gateways | writers | size) axes+=("$1") ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
    esac
    shift
done
[ "${#axes[@]}" -gt 0 ] || axes=(configurations devices gateways writers size)
[ "$table" = /dev/null ] || : > "$table"
export MSS_STACK_CONFIGURATION=release
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
mssctl() { MSS_CONFIG_FILE="$MSS_STACK_FOLDER/mssctl.json" .build/release/mssctl "$@"; }
sql() { # ARGUMENT…: psql on this stack's database, in sessions that may hurry; the services' own stay as they are
    PGPASSWORD=$(cat "$MSS_STACK_FOLDER/postgres/password") \
        PGOPTIONS='-c synchronous_commit=off -c maintenance_work_mem=1GB -c client_min_messages=warning' \
        psql -X -qAt -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$MSS_STACK_POSTGRES_PORT" -U mss mss "$@"
}
copy() { # TABLE PREPARATION QUERY: fills a table that PREPARATION makes or empties; frozen, so vacuum has no work left
    sql -c "COPY ($3) TO STDOUT (FORMAT binary)" |
        sql -c BEGIN -c "$2" -c "COPY $1 FROM STDIN (FORMAT binary, FREEZE)" -c COMMIT
}
begin() { # OPLOGS: the stack anew, with so many oplogs, ten for each channel
    deploy/down --wipe > /dev/null
    start_stack --plain
    configure 2
    local begin=$SECONDS
    fill_channels $(($1 / 10))
    fill_oplogs "$1" $(($1 / 10))
    sql -c 'VACUUM (ANALYZE)' -c CHECKPOINT
    echo "$1 oplogs: $((SECONDS - begin)) s," \
        "$(sql -c 'SELECT pg_size_pretty(pg_database_size(current_database()))')" >&2
}
scale() { start_stack --plain --scale "$1=$2"; } # TIER COUNT
configure() { # COUNT
    python3 - "$1" > "$folder/control.json" <<'PYTHON'
import json, sys
def configuration(name, scope):
    return {"instanceId": "growth", "bizType": name, "description": "", "scope": scope, "target": "user",
        "repush": "all"}
names = [("UCHAT", "appointed"), ("NEWS", "global")] + [(f"SYNC-{n}", "appointed") for n in range(2, int(sys.argv[1]))]
print(json.dumps({"instances": [{"instanceId": "growth"}], "configurations": [configuration(*name) for name in names]}))
PYTHON
    mssctl apply "$folder/control.json" > "$folder/apply.log"
    # The filled-in rows are older than the configuration.
    sql -c "UPDATE sync_configuration SET data_since = '-infinity' WHERE instance_id = 'growth'"
}

# Users are named load-NNNNNNN, so those of a load, load-50000NN-NNNNNNN, stand in the middle of the indexes.
fill_channels() { # COUNT: users with a channel, a device, a sync point and their rows of statistics, in key order
    local users="SELECT n, 'load-' || lpad(((n - 1) * (10000000 / $1))::text, 7, '0') AS name
        FROM generate_series(1::bigint, $1) n"
    copy 'channel (channel_id, instance_id, kind, target, biz_type, head)' 'TRUNCATE channel' \
        "SELECT n, 'growth', 0::smallint, name, 'UCHAT', 1::bigint FROM ($users) u"
    copy 'sync_point (channel_id, device_id, store_id, oplog_id)' 'TRUNCATE sync_point' \
        "SELECT n, 'device-' || name, 'store', 1::bigint FROM ($users) u"
    copy 'owner (instance_id, user_id, device_id, ownership_epoch)' 'TRUNCATE owner' \
        "SELECT 'growth', name, 'device-' || name, n FROM ($users) u"
    copy 'statistics_target (target_id, instance_id, kind, target)' 'TRUNCATE statistics_target' \
        "SELECT n, 'growth', 0::smallint, name FROM ($users) u"
    copy 'statistics_channel (channel_id, instance_id, kind, biz_type, target_id)' 'TRUNCATE statistics_channel' \
        "SELECT n, 'growth', 0::smallint, 'UCHAT', n FROM ($users) u"
    sql -c "SELECT setval(pg_get_serial_sequence('channel', 'channel_id'), $1),
        setval(pg_get_serial_sequence('statistics_target', 'target_id'), $1)" > "$folder/setval"
}
# The five weeks that a retention of 30 days leaves; of this one as far as it has come.
weeks() { # name|from|to|end of the rows
    sql -c "SELECT 'oplog_' || to_char(m AT TIME ZONE 'UTC', 'YYYYMMDD'), m, m + interval '7 days',
            least(m + interval '7 days', now())
        FROM generate_series(0, 4) w,
            LATERAL (SELECT (date_trunc('week', now() AT TIME ZONE 'UTC') - make_interval(weeks => w))
                AT TIME ZONE 'UTC' AS m) monday ORDER BY 1"
}
# Their transaction is the first of the database, so neither the sweep nor the statistics take them for new ones.
fill_oplogs() { # COUNT CHANNELS: so many in all, in the order of time, each to the next channel of a scattered round
    local part=$(($1 / 5)) first=0 name from to end columns
    columns='channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary, operating_system,
        minimum_version, maximum_version, share_start, share_size, valid_until, created_at, recalls, recalled_at,
        written_by'
    while IFS='|' read -r name from to end; do
        sql -c "DROP TABLE IF EXISTS $name"
        # With the constraint attaching reads no row.
        copy "$name ($columns)" "CREATE TABLE delivery.$name (LIKE oplog INCLUDING DEFAULTS,
                CONSTRAINT week CHECK (created_at >= '$from' AND created_at < '$to'))" \
            "SELECT 1 + n * 7919 % $2, 1 + n / $2, 'growth-' || n, hashint8extended(n, 0),
                convert_to(rpad('{\"number\":' || n || '}', 100), 'UTF8'), false, 0::smallint, '', '', 0::smallint,
                10000::smallint, at + interval '30 days', at, NULL::bigint, NULL::timestamptz, 3::bigint
            FROM (SELECT $first + k AS n, '$from'::timestamptz
                    + k * (('$end'::timestamptz - '$from'::timestamptz) / $part::float8) AS at
                FROM generate_series(0::bigint, $part - 1) k) o"
        # Builds the indexes.
        sql -c "ALTER TABLE oplog ATTACH PARTITION $name FOR VALUES FROM ('$from') TO ('$to')" \
            -c "ALTER TABLE $name DROP CONSTRAINT week"
        first=$((first + part))
    done < <(weeks)
    sql -c "UPDATE channel SET head = $1 / $2 + 1 WHERE channel_id <= $2"
}
# The first 20 users of a load have 5,000 oplogs each, whose validity has ended: they are in every index, and no device
# gets them.
fill_histories() { # RUN
    sql -v run="$1" <<'SQL'
WITH made AS (
    INSERT INTO channel (instance_id, kind, target, biz_type, head)
    SELECT 'growth', 0, 'load-' || :'run' || '-' || lpad(u::text, 7, '0'), 'UCHAT', 5000
    FROM generate_series(0, 19) u RETURNING channel_id
)
INSERT INTO oplog (
    channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary, operating_system, minimum_version,
    maximum_version, share_start, share_size, valid_until, created_at, written_by)
SELECT m.channel_id, n, 'history-' || n, hashint8extended(n, m.channel_id), convert_to(rpad('{}', 100), 'UTF8'),
    false, 0, '', '', 0, 10000, now() - interval '1 minute',
    now() - interval '1 hour' - (5000 - n) * interval '7 minutes', 3
FROM made m, generate_series(1, 5000) n;
SQL
}

# A fault ends the script, with the load's output.
load_growth() {
    load --instance growth --gateway "${gateways#,}" "$@" > "$folder/load.log" 2>&1 ||
        { cat "$folder/load.log" >&2; exit 1; }
}
run=0
measure() { # STEP RATE DEVICES_PER_USER GATEWAYS: a row of the table
    local number
    gateways=''
    for number in $(seq "$4"); do gateways+=",127.0.0.1:$((MSS_STACK_DEVICE_PORT - 1 + number))"; done
    run=$((run + 1))
    python3 deploy/bench/growth.py scenario "$2" "$3" > "$folder/load.json"
    fill_histories $((5000000 + run))
    sql -c CHECKPOINT
    load_growth --rate "$2" --seconds 3 --no-resources # warms
    load_growth --scenario "$folder/load.json" --run-name $((5000000 + run)) --report "$folder/report.json"
    python3 deploy/bench/growth.py row "$1" "$folder/report.json" | tee -a "$table"
}
for axis in "${axes[@]}"; do
    python3 deploy/bench/growth.py head "$axis" | tee -a "$table"
    [ "$axis" = size ] || begin 100000
    case $axis in
    configurations) for count in 2 100 1000; do configure "$count"; measure "$count" 500 1 1; done ;;
    devices) for count in 1 5 20; do measure "$count" 100 "$count" 1; done ;;
    gateways) for count in 1 2 4; do scale gateway "$count"; measure "$count" 500 1 "$count"; done ;;
    writers) for count in 1 2 4; do scale writer "$count"; measure "$count" 500 1 1; done ;;
    size)
        for count in 100000 10000000 100000000; do
            [ "$count" -le "$upto" ] || break
            begin "$count"
            measure "$count" 500 1 1
        done
        ;;
    esac
    echo | tee -a "$table"
done
