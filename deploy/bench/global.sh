#!/usr/bin/env bash
# How many rows a global push writes when a million devices are known.
#   global.sh [DEVICES]     on the local stack (deploy/up --detach); 1,000,000 by default
set -euo pipefail
cd "$(dirname "$0")/../.."
devices=${1:-1000000}
# shellcheck source=deploy/bench/database.sh
source deploy/bench/database.sh
push() {
    .build/release/mssctl push-global --instance demo_app --biz-type GLOBAL-SDK-CONFIG "$1" |
        sed -E 's/.*"msg":"([A-Z_]*)".*/  answer: \1/'
}
# Rows written to the tables of pushes so far; the server's counters are a moment behind.
written() {
    sleep 2
    psql -c "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables
        WHERE relname ~ '^(oplog|channel|sync_point|reread|statistics)'"
}
push first
psql -v devices="$devices" <<'SQL' > /dev/null
INSERT INTO sync_point (channel_id, device_id, store_id, oplog_id)
SELECT c.channel_id, 'known-' || n, 's', c.head FROM channel c, generate_series(1, :devices) n
WHERE c.biz_type = 'GLOBAL-SDK-CONFIG' ON CONFLICT DO NOTHING;
SQL
echo "known devices: $(psql -c "SELECT count(*) FROM sync_point p JOIN channel c USING (channel_id)
    WHERE c.biz_type = 'GLOBAL-SDK-CONFIG'")"
before=$(written)
push second
echo "  rows written by this push, statistics included: $(($(written) - before))"
