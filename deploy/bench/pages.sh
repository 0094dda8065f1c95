#!/usr/bin/env bash
# How long every page of the console takes with a full database: follows every link.
#   pages.sh [FACTS] [RECORDS]     on servers of its own; 1,000,000 facts and 100,000 audit records by default, and
#                                  1,000 configurations. A hundred million facts take 20 GB and some time
# It fails when the 95th percentile of a page is above 200 ms, or a page is not bounded.
set -euo pipefail
cd "$(dirname "$0")/../.."
facts=${1:-1000000} records=${2:-100000}
for product in mssctl mss-oplog-writer mss-console; do swift build -c release --product "$product"; done
# shellcheck source=deploy/bench/private.sh
source deploy/bench/private.sh
start_postgres
start_rabbitmq
export MSS_AMQP_PASSWORD=bench
MSS_POSTGRES_USER=writer MSS_AMQP_USER=writer MSS_HEALTH_PORT=$health_port .build/release/mss-oplog-writer \
    > "$folder/writer.log" 2>&1 &
bench_pids+=($!)
until_ready curl -fsS "127.0.0.1:$health_port/readyz"
python3 - > "$folder/control.json" <<'PYTHON'
import json
print(json.dumps({
    "instances": [{"instanceId": "bench"}] + [{"instanceId": f"other-{n}"} for n in range(50)],
    "configurations": [{
        "instanceId": "bench", "bizType": f"SYNC-{n}", "description": f"number {n}", "scope": "appointed",
        "target": "user", "repush": "all"} for n in range(1000)]}))
PYTHON
MSS_AMQP_USER=tool "$mssctl" apply "$folder/control.json" > "$folder/apply.log"
echo "filling the database"
as_owner psql -qX -v facts="$facts" -f deploy/bench/figures.sql
as_owner psql -qX -v records="$records" -f deploy/bench/records.sql
as_owner psql -qAtX -F ' ' <<'SQL'
SELECT count(*), 'configurations' FROM sync_configuration;
SELECT number, 'operation records' FROM record_head;
SELECT pg_size_pretty(pg_database_size(current_database()));
SQL
console_port=$((health_port + 1))
MSS_POSTGRES_USER=console MSS_AMQP_USER=console MSS_HEALTH_PORT=$((health_port + 2)) MSS_CONSOLE_PORT=$console_port \
    .build/release/mss-console > "$folder/console.log" 2>&1 &
bench_pids+=($!)
until_ready curl -fsS "127.0.0.1:$((health_port + 2))/readyz"
invitation=$(MSS_POSTGRES_USER=mss "$mssctl" console invite --console "http://127.0.0.1:$console_port")
python3 deploy/bench/pages.py --invitation "$invitation"
