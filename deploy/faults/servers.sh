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

await() { # WHAT COMMAND…: succeeds, within `await_seconds` seconds, by default a minute
    local what=$1
    shift
    for _ in $(seq $((${await_seconds:-60} * 10))); do
        ! "$@" || return 0
        sleep 0.1
    done
    complain "$what took longer than ${await_seconds:-60} s"
}

promoted() { # DATA: the instant at which this server began its timeline, of the monotonic clock
    python3 - "$1/pg_wal" <<'PYTHON'
import glob, os, sys, time
newest = max(glob.glob(sys.argv[1] + "/*.history"), key=os.path.getmtime)
print(os.path.getmtime(newest) - time.time() + time.monotonic())
PYTHON
}

start_devices() { # PREFIX: one for each user, at `device_host` or here, until each has all of its data
    mkdir -p "$devices"
    for user in $(seq 0 $((users - 1))); do
        # Connections of more processes that start at once would time out.
        [ "$user" = 0 ] || [ $((user % 20)) != 0 ] || sleep 2
        ".build/$MSS_STACK_CONFIGURATION/mssctl" listen --json --instance demo_app --device "device-$user" \
            --user "$1-$user" --session s --host "${device_host:-127.0.0.1}" \
            --port $((MSS_STACK_DEVICE_PORT + user % 2)) --ca "$stack/tls/ca.pem" --store "$devices/$user.sqlite" \
            > "$devices/$1-$user.jsonl" 2> "$devices/$user.log" &
        listeners+=($!)
        disown
    done
    await "the devices' first connection" are_caught_up
}

are_caught_up() { [ "$(grep -l "caught up" "$devices"/*.log | wc -l)" = "$users" ]; }
