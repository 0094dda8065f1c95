# shellcheck shell=bash
# Shared by the scripts in which PostgreSQL's server is replaced under load: servers, and devices that print their
# oplogs (`mssctl listen`). Sourced from the top folder, not run; root, release build.
# shellcheck source=deploy/faults/machine.sh
source deploy/faults/machine.sh
# shellcheck source=deploy/scripts/stack.sh
source deploy/scripts/stack.sh
# shellcheck disable=SC2034 # some are for those that source it
users=20 primary="$stack/postgres" devices="$folder/devices"
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

as_owner() { # COMMAND…: with the owner's password, on this machine
    PGPASSWORD=$(cat "$stack/secrets/postgres_owner") PGHOST=127.0.0.1 PGUSER=mss "$@"
}

ask() { # PORT SQL: as the owner
    as_owner psql -X -qAt -p "$1" mss -c "$2"
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

start_devices() { # PREFIX: one for each user, until each has all of its data
    mkdir -p "$devices"
    for user in $(seq 0 $((users - 1))); do
        ".build/$MSS_STACK_CONFIGURATION/mssctl" listen --json --instance demo_app --device "device-$user" \
            --user "$1-$user" --session s --port $((MSS_STACK_DEVICE_PORT + user % 2)) --ca "$stack/tls/ca.pem" \
            --store "$devices/$user.sqlite" > "$devices/$1-$user.jsonl" 2> "$devices/$user.log" &
        listeners+=($!)
        disown
    done
    await "the devices' first connection" are_caught_up
}

are_caught_up() { [ "$(grep -l "caught up" "$devices"/*.log | wc -l)" = "$users" ]; }
