# shellcheck shell=bash
# For the benchmarks: servers of their own in a folder that is gone afterwards. Sourced in the project's root, with
# the product of `swift build -c release --product mssctl`.
folder=$(mktemp -d)
bench_pids=()
stop_servers() {
    for pid in "${bench_pids[@]}"; do kill -TERM "$pid" 2> /dev/null || true; done
    for pid in "${bench_pids[@]}"; do wait "$pid" 2> /dev/null || true; done
    rm -rf "$folder"
}
trap stop_servers EXIT
# RabbitMQ takes the two ports after its own, and the three after that of health are free too.
postgres_port=$(deploy/scripts/free-ports.sh 8)
# shellcheck disable=SC2034 # not every bench needs all
amqp_port=$((postgres_port + 1)) health_port=$((postgres_port + 4))
export MSS_ENVIRONMENT=development MSS_POSTGRES_PORT=$postgres_port MSS_AMQP_PORT=$amqp_port
mssctl=.build/release/mssctl
as_owner() { PGHOST=127.0.0.1 PGPORT=$postgres_port PGUSER=mss PGDATABASE=mss "$@"; }
until_ready() { # COMMAND…
    for _ in $(seq 600); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
    echo "not ready: $*" >&2
    return 1
}
start_postgres() {
    deploy/scripts/postgres.sh init "$folder/postgres" "$postgres_port"
    deploy/scripts/postgres.sh run "$folder/postgres" > "$folder/postgres.log" 2>&1 &
    bench_pids+=($!)
    until_ready deploy/scripts/postgres.sh ready "$folder/postgres"
    deploy/scripts/postgres.sh create-database "$folder/postgres" mss
    "$mssctl" secrets "$folder/secrets" > /dev/null
    MSS_POSTGRES_USER=mss "$mssctl" migrate --logins "$folder/secrets" > /dev/null
}
start_rabbitmq() {
    mkdir -p "$folder/secrets"
    for tier in ingest writer gateway validator statistics tool console; do
        printf 'bench' > "$folder/secrets/amqp_$tier"
    done
    "$mssctl" secrets "$folder/secrets" > /dev/null
    deploy/scripts/rabbitmq.sh init "$folder/rabbitmq" "$amqp_port" "$folder/secrets/definitions.json"
    deploy/scripts/rabbitmq.sh run "$folder/rabbitmq" > "$folder/rabbitmq.log" 2>&1 &
    bench_pids+=($!)
    until_ready deploy/scripts/rabbitmq.sh ready "$folder/rabbitmq"
}
