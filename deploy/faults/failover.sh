#!/usr/bin/env bash
# PostgreSQL fails over to a standby that lacks the last commits, while a backend pushes to devices: each push that was
# answered after that reaches its device, once and in order, and no id has two contents; pushes that were lost with the
# old primary are counted apart. Then the old primary is back, first elsewhere, then at its successor's address: nothing
# is written to it. Release build, root, a stack of its own that is gone afterwards.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/faults/servers.sh
source deploy/faults/servers.sh
standby="$stack/standby"

start_stack --scale ingest=2 --scale writer=2 --scale gateway=2
other_port=$((MSS_STACK_POSTGRES_PORT + 20))

deploy/scripts/postgres.sh standby "$standby" "$primary" 127.0.0.1 "$other_port"
start_server postgres-standby "$standby" "$other_port"
is_streaming() {
    [ "$(ask "$MSS_STACK_POSTGRES_PORT" "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = 1 ]
}
await "the standby's connection" is_streaming

start_devices failover
start_pushing --prefix failover --users "$users"
await_pushes 1000
# From here on the standby lacks the commits.
ask "$other_port" "ALTER SYSTEM SET primary_conninfo = ''"
ask "$other_port" "SELECT pg_reload_conf()" > /dev/null
await_pushes 500
kill_server postgres "$primary"
failover=$(now)
ask "$other_port" "SELECT pg_promote()" > /dev/null
kill_server postgres-standby "$standby"
start_server postgres "$standby" "$MSS_STACK_POSTGRES_PORT"
await_pushes 2000
echo "$failover" | python3 "$faults/pushes.py" pauses "$notes"

oplogs() { ask "$1" "SELECT count(*), max(oplog_id) FROM oplog"; }
start_server postgres-old "$primary" "$other_port"
before=$(oplogs "$other_port")
await_pushes 500
# The old primary takes the address; the service must refuse it for as long as it is there.
kill_server postgres "$standby"
kill_server postgres-old "$primary"
refusals() { grep -c "old primary" "$stack/log/writer-$1.log" || true; }
start_server postgres "$primary" "$MSS_STACK_POSTGRES_PORT"
is_refused() { [ "$(refusals 1)" -gt 3 ] && [ "$(refusals 2)" -gt 3 ]; }
await "the refusal of the old primary" is_refused
after=$(oplogs "$MSS_STACK_POSTGRES_PORT")
kill_server postgres "$primary"
start_server postgres "$standby" "$MSS_STACK_POSTGRES_PORT"
await_pushes 500
stop_pushing
echo "the old primary's oplogs and highest id before and after it was back: $before, $after"
check_pushes --devices "$devices" --failover "$failover"
[ "$before" = "$after" ] || complain "the old primary was written to"
