#!/usr/bin/env bash
# PostgreSQL fails over to a standby that lacks the last commits, while a backend pushes to devices: what was answered
# after that reaches its device, once and in order, and no id stands for two contents; what was lost with the old
# primary is counted apart. Then the old primary is back, first elsewhere, then at its successor's address: nothing is
# written to it. Release build, root, a stack of its own that is gone afterwards.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/faults/machine.sh
source deploy/faults/machine.sh
# shellcheck source=deploy/scripts/stack.sh
source deploy/scripts/stack.sh
users=20 primary="$stack/postgres" standby="$stack/standby" devices="$folder/devices"
listeners=()
stop_stack() {
    kill -KILL "${backend:-}" "${listeners[@]}" 2> /dev/null || true
    kill -CONT "$(cut -d' ' -f1 "$stack/run/postgres.supervisor")" 2> /dev/null || true
    deploy/down > /dev/null
    rm -rf "$folder"
}

start_server() { # NAME DIR PORT: supervised, on a port
    echo "port = $3" >> "$2/data/postgresql.conf"
    supervise "$1" "$scripts/postgres.sh" run "$2"
    for _ in $(seq 600); do
        ! "$scripts/postgres.sh" ready "$2" || return 0
        sleep 0.1
    done
    complain "$1 did not start within a minute"
}

kill_server() { # NAME DIR
    kill -KILL "$(cut -d' ' -f1 "$stack/run/$1.supervisor")"
    "$faults/kill-database.sh" "$2"
}

ask() { # PORT SQL: as the owner
    PGPASSWORD=$(cat "$stack/secrets/postgres") psql -X -qAt -h 127.0.0.1 -p "$1" -U mss mss -c "$2"
}

await() { # WHAT COMMAND…: succeeds, within a minute
    local what=$1
    shift
    for _ in $(seq 600); do
        ! "$@" || return 0
        sleep 0.1
    done
    complain "$what took longer than a minute"
}

start_stack --scale ingest=2 --scale writer=2 --scale gateway=2
other_port=$((MSS_STACK_POSTGRES_PORT + 20))

mkdir -p "$standby/sock" "$devices"
PGPASSWORD=$(cat "$stack/secrets/postgres") pg_basebackup -h 127.0.0.1 \
    -p "$MSS_STACK_POSTGRES_PORT" -U mss -D "$standby/data" --checkpoint=fast --wal-method=stream --write-recovery-conf
echo "unix_socket_directories = '$standby/sock'" >> "$standby/data/postgresql.conf"
chown -R --reference="$primary/data" "$standby"
start_server postgres-standby "$standby" "$other_port"
is_streaming() {
    [ "$(ask "$MSS_STACK_POSTGRES_PORT" "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = 1 ]
}
await "the standby's connection" is_streaming

for user in $(seq 0 $((users - 1))); do
    ".build/$MSS_STACK_CONFIGURATION/mssctl" listen --json --instance demo_app --device "device-$user" \
        --user "failover-$user" --session s --port $((MSS_STACK_DEVICE_PORT + user % 2)) --ca "$stack/tls/ca.pem" \
        --store "$devices/$user.sqlite" > "$devices/failover-$user.jsonl" 2> "$devices/$user.log" &
    listeners+=($!)
    disown
done
are_caught_up() { [ "$(grep -l "caught up" "$devices"/*.log | wc -l)" = "$users" ]; }
await "the devices' first connection" are_caught_up
start_pushing --prefix failover --users "$users"
await_pushes 1000
# From here on the standby lacks what is committed.
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
rows | python3 "$faults/pushes.py" check "$notes" --devices "$devices" --failover "$failover"
[ "$before" = "$after" ] || complain "the old primary was written to"
