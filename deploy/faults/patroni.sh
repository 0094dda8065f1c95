#!/usr/bin/env bash
# A PostgreSQL cluster of three machines under Patroni, with etcd on three others and a synchronous standby, while a
# backend pushes to connected devices. Each push that was answered reaches its device, once and in order. Prints for
# each fault the longest time without an answer, and how long after the new leader's promotion NOT_ONLINE was answered.
# Fails when the first is above Patroni's ttl plus 2 s, or the second above 2 s. Release build, root, a stack and a
# network of its own.
#   patroni.sh [kill] [switchover] [fence] [lose] [standby] [standby-lost]     all by default
#     kill           the leader's Patroni and PostgreSQL are killed, and started again after 30 s
#     switchover     patronictl switchover
#     fence          the leader loses its link to etcd and the standbys, and keeps the one to the service, until 20 s
#                    after it has given its role up
#     lose           the same with both links, as when its machine is lost
#     standby        the synchronous standby's Patroni and PostgreSQL are killed for 20 s
#     standby-lost   the synchronous standby loses both links for 30 s
set -euo pipefail
cd "$(dirname "$0")/../.."
faults_wanted=("$@")
[ $# -gt 0 ] || faults_wanted=(kill switchover fence lose standby standby-lost)
deploy/scripts/packages.sh --run patroni etcd-server etcd-client iproute2
# shellcheck disable=SC2034 # for machine.sh
own_network=yes
# shellcheck source=deploy/faults/servers.sh
source deploy/faults/servers.sh
# shellcheck source=deploy/faults/network.sh
source deploy/faults/network.sh
ttl=20
nodes=(1 2 3)
bin=$(echo /usr/lib/postgresql/*/bin)
database_host=10.77.1.1,10.77.1.2,10.77.1.3
stop_stack() {
    kill -KILL "${backend:-}" "${listeners[@]}" 2> /dev/null || true
    deploy/down > /dev/null
    for node in "${nodes[@]}"; do stop_supervised "patroni-$node" & done
    wait
    for node in "${nodes[@]}"; do stop_supervised "etcd-$node"; done
    rm -rf "$folder"
}

# ---- the cluster -----------------------------------------------------------------------------------------------------

on_server() { # NODE PSQL-OPTION…: as the superuser, on the machine itself
    setpriv --reuid=postgres --regid=postgres --init-groups -- \
        psql -X -qAt -h "$stack/db$1/sock" -p "$MSS_STACK_POSTGRES_PORT" -U postgres -d postgres "${@:2}"
}

configure() { # NODE
    local dir=$stack/db$1
    mkdir -p "$dir/sock"
    install -m 600 "$stack/tls/postgres.key" "$stack/tls/postgres.pem" "$dir"
    cat > "$dir/patroni.yml" <<YAML
scope: mss
name: db$1
restapi: {listen: "10.77.2.$1:8008", connect_address: "10.77.2.$1:8008"}
etcd3: {hosts: ["10.77.2.11:2379", "10.77.2.12:2379", "10.77.2.13:2379"]}
bootstrap:
  dcs:
    ttl: $ttl
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters:
        max_connections: 200
        wal_sender_timeout: 5s
        wal_receiver_timeout: 5s
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, data-checksums]
  pg_hba:
    - local all all trust
    - host replication replicator 10.77.2.0/24 scram-sha-256
    - hostssl all all 10.77.0.0/16 scram-sha-256
postgresql:
  listen: "*:$MSS_STACK_POSTGRES_PORT"
  connect_address: "10.77.2.$1:$MSS_STACK_POSTGRES_PORT"
  data_dir: $dir/data
  bin_dir: $bin
  pgpass: $dir/pgpass
  use_unix_socket: true
  use_unix_socket_repl: true
  authentication:
    superuser: {username: postgres, password: superuser}
    replication: {username: replicator, password: replicator}
    rewind: {username: rewinder, password: rewinder}
  parameters:
    unix_socket_directories: $dir/sock
    log_line_prefix: "%m [%p] %q%a "
    ssl: "on"
    ssl_cert_file: $dir/postgres.pem
    ssl_key_file: $dir/postgres.key
YAML
    chown -R postgres:postgres "$dir"
}

start_etcd() { # NODE
    local host=http://10.77.2.1$1
    supervise "etcd-$1" ip netns exec "etcd$1" etcd --name "etcd$1" --data-dir "$stack/etcd$1" \
        --listen-peer-urls "$host:2380" --initial-advertise-peer-urls "$host:2380" \
        --listen-client-urls "$host:2379" --advertise-client-urls "$host:2379" --initial-cluster-state new \
        --heartbeat-interval 200 --election-timeout 2000 --logger zap --log-level warn \
        --initial-cluster "etcd1=http://10.77.2.11:2380,etcd2=http://10.77.2.12:2380,etcd3=http://10.77.2.13:2380"
}

start_patroni() { # NODE
    supervise "patroni-$1" ip netns exec "db$1" setpriv --reuid=postgres --regid=postgres --init-groups -- \
        env HOME="$stack/db$1" patroni "$stack/db$1/patroni.yml"
}

kill_node() { # NODE
    kill -KILL "$(cut -d' ' -f1 "$stack/run/patroni-$1.supervisor")" "$(cat "$stack/run/patroni-$1.child")"
    "$faults/kill-database.sh" "$stack/db$1"
}

control() { # NODE ARGUMENT…: patronictl on that machine
    on "db$1" patronictl -c "$stack/db$1/patroni.yml" "${@:2}"
}

members() { # NODE ROLE: the numbers of running members with that role, as that machine sees the cluster
    control "$1" list -f json 2> /dev/null | python3 -c 'import json, sys
for member in json.load(sys.stdin):
    if member["Role"] == sys.argv[1] and member["State"] in ("running", "streaming"): print(member["Member"][2:])' "$2"
}
is_whole() { # a leader, a synchronous standby and a further one
    [ "$(members 1 Leader | wc -l) $(members 1 'Sync Standby' | wc -l) $(members 1 Replica | wc -l)" = "1 1 1" ]
}

has_another_leader() { # than before the fault, as the standby's machine sees the cluster
    local found
    found=$(members "$standby" Leader)
    [ -n "$found" ] && [ "$found" != "$leader" ]
}

# The former leader takes no writes: it is a standby, or its server does not run.
is_fenced() { [ "$(on_server "$leader" -c 'SELECT pg_is_in_recovery()' 2> /dev/null || echo t)" = t ]; }

cut_off() { # SWITCH…: the leader loses these links, until 20 s after it has given its role up
    local switch
    for switch; do cut_link "db$leader" "$switch"; done
    await "the end of the cut-off leader's role" is_fenced
    fenced=$(now)
    sleep 20
    is_fenced || complain "the cut-off leader took its role again"
    for switch; do heal_link "db$leader" "$switch"; done
}

is_before() { python3 -c "raise SystemExit(not $1 < $2)"; } # INSTANT INSTANT

make_switch service 10.77.1.254/24
make_switch cluster
mkdir -p "$stack/log" "$stack/run"
# The server's user must be able to walk down to its folders.
chmod a+x "$folder" "$stack"
deploy/scripts/certificates.sh "$stack/tls" IP:10.77.1.1 IP:10.77.1.2 IP:10.77.1.3
for node in "${nodes[@]}"; do
    make_machine "db$node"
    plug "db$node" service "10.77.1.$node/24"
    plug "db$node" cluster "10.77.2.$node/24"
    configure "$node"
    make_machine "etcd$node"
    plug "etcd$node" cluster "10.77.2.1$node/24"
    start_etcd "$node"
done
start_patroni 1
has_leader() { [ "$(members 1 Leader)" = 1 ]; }
await "the first leader" has_leader
for node in 2 3; do start_patroni "$node"; done
await "the whole cluster" is_whole
umask 077
"$binaries/mssctl" secrets "$stack/secrets" > /dev/null
on_server 1 -v ON_ERROR_STOP=1 -v password="$(cat "$stack/secrets/postgres_owner")" <<'SQL'
CREATE ROLE mss LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE mss OWNER mss;
SQL

# ---- the run ---------------------------------------------------------------------------------------------------------

start_stack --postgres "$database_host" --scale ingest=2 --scale writer=2 --scale gateway=2
start_devices patroni
start_pushing --prefix patroni --users "$users" --rate 100
await_pushes 500
instants=$folder/instants
for fault in "${faults_wanted[@]}"; do
    await "the whole cluster" is_whole
    sleep 5
    leader=$(members 1 Leader)
    standby=$(members 1 'Sync Standby')
    begun=$(now) fenced=''
    case $fault in
    kill)
        kill_node "$leader"
        sleep 30
        start_patroni "$leader"
        ;;
    switchover) control "$leader" switchover --master "db$leader" --candidate "db$standby" --force > /dev/null ;;
    fence) cut_off cluster ;;
    lose) cut_off cluster service ;;
    standby)
        kill_node "$standby"
        sleep 20
        start_patroni "$standby"
        ;;
    standby-lost)
        cut_link "db$standby" cluster
        cut_link "db$standby" service
        sleep 30
        heal_link "db$standby" cluster
        heal_link "db$standby" service
        ;;
    *) complain "unknown fault $fault" ;;
    esac
    case $fault in
    standby*) echo "$begun $fault $standby" ;;
    *)
        await "another leader" has_another_leader
        took_over=$(promoted "$stack/db$(members "$standby" Leader)/data")
        echo "$begun $fault $leader $took_over"
        [ -z "$fenced" ] || is_before "$fenced" "$took_over" || complain "two leaders took writes at the same time"
        ;;
    esac >> "$instants"
    await "the whole cluster" is_whole
    await_pushes 100
    sleep 3
done
stop_pushing
failed=''
python3 "$faults/pushes.py" gaps "$notes" --limit $((ttl + 2)) --limited "$(IFS=,; echo "${faults_wanted[*]}")" \
    --not-online 2 < "$instants" || failed=yes
check_pushes --devices "$devices"
[ -z "$failed" ] || complain "the service was away, or its devices were, for too long"
