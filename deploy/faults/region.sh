#!/usr/bin/env bash
# Two sites, a and b, each with a network, a PostgreSQL server, a broker and a service of its own. One site is active.
# The server of the other one is the synchronous standby, its broker is empty, and its processes wait. While a backend
# pushes to 500 connected TLS devices, the script does the steps of deploy/manual/Sites.md:
#   standby-lost   site b is cut off from site a: no push is answered, until the operator ends the wait for the standby
#   lose           site a loses all links, then every process there is killed; site b takes over
#   back           site a's server becomes the standby of site b's (pg_rewind)
#   return         a planned switch to site a, and site b becomes the standby again
# Each push that was answered reaches its device, once and in order. Prints for each event the times of the steps, the
# longest time without an answer, and when devices got data again. Fails when the site's loss takes longer than 30 s, of
# which 5 s are before the operator's first step, or a planned switch longer than 30 s. Release build, root, stacks and
# networks of its own.
#   region.sh [DEVICES]     500
set -euo pipefail
cd "$(dirname "$0")/../.."
deploy/scripts/packages.sh --run iproute2
# shellcheck disable=SC2034 # for machine.sh
own_network=yes
# shellcheck source=deploy/faults/servers.sh
source deploy/faults/servers.sh
# shellcheck source=deploy/faults/network.sh
source deploy/faults/network.sh
users=${1:-500} await_seconds=300
name=mss.example device_host=$name
database_host=10.77.2.1,10.77.2.2 # of the two, psql takes the primary
declare -A number=([a]=1 [b]=2) other=([a]=b [b]=a)
event='' begun=''

instants=$folder/instants
stop_stack() {
    kill -KILL "${backend:-}" "${watcher:-}" "${listeners[@]}" 2> /dev/null || true
    for site in a b; do at "$site" deploy/down > /dev/null & done
    wait
    rm -rf "$folder"
}

# ---- the sites -------------------------------------------------------------------------------------------------------

at() { # SITE COMMAND…: on that site's network, with its stack
    MSS_STACK_FOLDER=$stack/$1 on "$@"
}

sql() { # SITE SQL: as the owner, on that site's server
    as_owner ip netns exec "$1" psql -X -qAt -v ON_ERROR_STOP=1 -p "$MSS_STACK_POSTGRES_PORT" mss -c "$2"
}

make_site() { # SITE
    local tier
    make_machine "$1"
    plug "$1" outside "10.77.1.${number[$1]}/24"
    plug "$1" between "10.77.2.${number[$1]}/24"
    mkdir -p "$stack/log/$1" "$stack/$1/run" "$stack/$1/settings"
    ln -s "../log/$1" "$stack/$1/log"
    # Both sites have the same secrets: the logins and the sealed secrets are in the database.
    cp -a "$stack/secrets" "$stack/tls" "$stack/$1"
    for tier in 1 2; do
        echo "MSS_GATEWAY_HOST=0.0.0.0" > "$stack/$1/settings/gateway-$tier"
        printf '%s\n' MSS_INGEST_HOST=0.0.0.0 "MSS_INGEST_CERTIFICATE_FILE=$stack/$1/tls/server.pem" \
            "MSS_INGEST_PRIVATE_KEY_FILE=$stack/$1/tls/server.key" > "$stack/$1/settings/ingest-$tier"
    done
}

configure() { # SITE: what differs between the two servers, in the file that comes last
    local conninfo="host=10.77.2.${number[${other[$1]}]} port=$MSS_STACK_POSTGRES_PORT user=mss sslmode=require"
    conninfo+=" password=$(cat "$stack/secrets/postgres_owner") connect_timeout=3"
    cat > "$stack/$1/postgres/data/postgresql.auto.conf" <<CONF
cluster_name = '$1'
listen_addresses = '127.0.0.1,10.77.2.${number[$1]}'
unix_socket_directories = '$stack/$1/postgres/sock'
primary_conninfo = '$conninfo'
primary_slot_name = '$1'
synchronous_standby_names = ''
wal_sender_timeout = 5s
wal_receiver_timeout = 5s
wal_keep_size = 1GB
max_slot_wal_keep_size = 4GB
CONF
    chown -R postgres:postgres "$stack/$1/postgres"
}

start_postgres() { # SITE
    # shellcheck disable=SC2016 # for the shell there
    at "$1" bash -c 'source deploy/scripts/stack.sh; supervise postgres "$scripts/postgres.sh" run "$stack/postgres"'
    await "the server of site $1" at "$1" "$scripts/postgres.sh" ready "$stack/$1/postgres"
}

follow() { # SITE: its server, which does not run, becomes the standby of the other site's
    local of=${other[$1]}
    sql "$of" "SELECT pg_create_physical_replication_slot('$1')
        WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '$1')" > /dev/null
    configure "$1"
    install -o postgres -g postgres -m 600 /dev/null "$stack/$1/postgres/data/standby.signal"
    start_postgres "$1"
    await "the standby at site $1" is_streaming "$1"
}

is_streaming() { # SITE [STATE]: it follows the other site's server, with that state
    [ "$(sql "${other[$1]}" "SELECT count(*) FROM pg_stat_replication WHERE application_name = '$1'
        AND state = 'streaming' AND sync_state ~ '${2:-}'")" = 1 ]
}

wait_for_standby() { # SITE [STANDBY]: the server there answers a commit when the standby has it; without: at once
    sql "$1" "ALTER SYSTEM SET synchronous_standby_names = '${2:-}'"
    sql "$1" "SELECT pg_reload_conf()" > /dev/null
    [ -z "${2:-}" ] || await "the synchronous standby at site $2" is_streaming "$2" sync
}

start_site() { # SITE: all of its processes. Those of a standby wait for its promotion
    at "$1" deploy/up --detach --scale ingest=2 --scale writer=2 --scale gateway=2 > "$folder/up-$1.log" 2>&1 ||
        { cat "$folder/up-$1.log" >&2 && complain "site $1 did not come up"; }
}

stop_processes() { # SITE: callers first, the database last. The broker runs on
    # shellcheck disable=SC2016 # for the shell there
    at "$1" bash -c 'source deploy/scripts/stack.sh
        stop() { for file; do stop_supervised "${file%.supervisor}" & done; wait; }
        cd "$stack/run"
        stop {ingest,console}*.supervisor
        stop {gateway,validator,relay,writer,statistics}*.supervisor
        stop postgres.supervisor'
}

lose_site() { # SITE: every process there is gone at once
    local pids
    while mapfile -t pids < <(ip netns pids "$1") && [ "${#pids[@]}" -gt 0 ]; do
        kill -KILL "${pids[@]}" 2> /dev/null || true
    done
}

lead_to() { # SITE: devices and backends find this one under the name
    # In place: the file is mounted.
    printf '%s\n' "127.0.0.1 localhost" "10.77.1.${number[$1]} $name" > /etc/hosts
}

take_over() { # SITE: it becomes the active one
    sql "$1" "SELECT pg_promote()" > /dev/null
    step "site $1's server is promoted"
    lead_to "$1"
    step "the name leads to site $1"
    start_site "$1"
    step "every process of site $1 is ready"
    echo "$begun $event $(promoted "$stack/$1/postgres/data")" >> "$instants"
}

# ---- events ----------------------------------------------------------------------------------------------------------

begin() { # EVENT SITE
    event="$1 $2" begun=$(now)
    echo "$event"
}

step() { # TEXT
    awk -v now="$(now)" -v begun="$begun" -v text="$1" 'BEGIN { printf "  %5.1f s  %s\n", now - begun, text }'
}

watch_devices() { # when they get data again
    python3 "$faults/pushes.py" returns "$notes" --devices "$devices" --since "$begun" --within 200 &
    watcher=$!
}

await_devices() { wait "$watcher" || complain "a device got no data again"; }

cp /etc/hosts "$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
make_switch outside 10.77.1.254/24
make_switch between 10.77.2.254/24
mkdir -p "$stack"
umask 077
"$binaries/mssctl" secrets "$stack/secrets" > /dev/null
"$scripts/certificates.sh" "$stack/tls" "DNS:$name"
make_site a
make_site b
lead_to a

"$scripts/postgres.sh" init "$stack/a/postgres" "$MSS_STACK_POSTGRES_PORT" "$stack/secrets/postgres_owner"
echo "hostssl all,replication mss 10.77.2.0/24 scram-sha-256" >> "$stack/a/postgres/data/pg_hba.conf"
configure a
start_site a
at b "$scripts/postgres.sh" standby "$stack/b/postgres" "$stack/a/postgres" 10.77.2.1 "$MSS_STACK_POSTGRES_PORT"
follow b
wait_for_standby a b
start_site b

# ---- the run ---------------------------------------------------------------------------------------------------------

start_devices region
start_pushing --prefix region --users "$users" --rate 50 --host "$name" --ca "$stack/tls/ca.pem" --timeout 10
await_pushes 500

begin standby-lost b
echo "$begun $event" >> "$instants"
cut_link b between
sleep 3
before=$(answered)
sleep 12
[ "$(answered)" = "$before" ] || complain "a push was answered that the standby did not have"
step "no push is answered; $(sql a "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") commits wait"
wait_for_standby a
await_pushes 100
step "100 pushes are answered after the operator has ended the wait"
heal_link b between
await "the standby at site b" is_streaming b
wait_for_standby a b
step "the standby is back and synchronous"
await_pushes 500

begin lose a
cut_link a outside
cut_link a between
sleep 5
lose_site a
step "site a is lost"
watch_devices
take_over b
await_devices
await_pushes 500

begin back a
echo "$begun $event" >> "$instants"
heal_link a outside
heal_link a between
# pg_rewind reads the new timeline from the last checkpoint.
sql b CHECKPOINT
as_owner ip netns exec a "$scripts/postgres.sh" program "$stack/a/postgres" pg_rewind \
    --target-pgdata="$stack/a/postgres/data" \
    --source-server="host=10.77.2.2 port=$MSS_STACK_POSTGRES_PORT dbname=postgres" > "$folder/rewind.log" 2>&1 ||
    { cat "$folder/rewind.log" >&2 && complain "pg_rewind failed"; }
step "site a's server is rewound"
follow a
step "site a's server follows"
wait_for_standby b a
step "commits wait for site a"
start_site a
step "the processes of site a wait"
await_pushes 500

begin return a
stop_processes b
step "site b is stopped"
watch_devices
"$scripts/postgres.sh" program "$stack/b/postgres" pg_controldata "$stack/b/postgres/data" > "$folder/control"
grep -q '^Database cluster state: *shut down$' "$folder/control" || complain "site b's server was not stopped in order"
last=$(sed -n 's/^Latest checkpoint location: *//p' "$folder/control")
[ "$(sql a "SELECT pg_last_wal_replay_lsn() > '$last'")" = t ] || complain "site a lacks commits of site b"
# It follows site a already before the promotion, so every commit there waits for it.
follow b
sql a "ALTER SYSTEM SET synchronous_standby_names = 'b'"
sql a "SELECT pg_reload_conf()" > /dev/null
step "site b's server follows"
take_over a
start_site b
step "the processes of site b wait"
# A standby keeps what a slot asks for, although nobody reads it.
sql b "SELECT pg_drop_replication_slot('a')" > /dev/null
await_devices
await "the synchronous standby at site b" is_streaming b sync
await_pushes 500

stop_pushing
failed=''
python3 "$faults/pushes.py" gaps "$notes" --limit 30 --limited lose,return < "$instants" || failed=yes
check_pushes --devices "$devices"
[ -z "$failed" ] || complain "a switch took too long"
