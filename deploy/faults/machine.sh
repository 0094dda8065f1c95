# shellcheck shell=bash
# Shared by the scripts here: a local stack of its own in a mount namespace of its own, with own_network=yes also in a
# network namespace, on the release build. Sourced from the top folder, not run.
[ -n "${MSS_FAULTS_NAMESPACE:-}" ] ||
    exec env MSS_FAULTS_NAMESPACE=own unshare --mount ${own_network:+--net} "$0" "$@"
export MSS_STACK_CONFIGURATION=${MSS_STACK_CONFIGURATION:-release}
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
faults=deploy/faults
notes="$folder/notes"

complain() { # TEXT: the run has failed; its logs stay
    echo "failed: $1" >&2
    cp -r "$MSS_STACK_FOLDER/log" "$(mktemp -d)" && echo "logs: $_" >&2
    exit 1
}

now() { python3 -c 'import time; print(time.monotonic())'; }

answered() { wc -l < "$notes"; } # pushes so far

await_pushes() { # COUNT: so many more are answered, within a minute
    local goal=$(($(answered) + $1))
    for _ in $(seq 600); do
        [ "$(answered)" -lt "$goal" ] || return 0
        sleep 0.1
    done
    complain "the service did not come back within a minute"
}

await_database() { # the server takes connections, within a minute
    for _ in $(seq 600); do
        ! deploy/scripts/postgres.sh ready "$MSS_STACK_FOLDER/postgres" || return 0
        sleep 0.1
    done
    complain "PostgreSQL did not start within a minute"
}

start_pushing() { # OPTION…: of pushes.py
    python3 "$faults/pushes.py" run "$notes" --api "$MSS_STACK_API_PORT,$((MSS_STACK_API_PORT + 1))" "$@" &
    backend=$!
    for _ in $(seq 600); do
        [ ! -s "$notes" ] || return 0
        kill -0 "$backend" 2> /dev/null || break
        sleep 0.1
    done
    complain "no push was answered within a minute"
}

stop_pushing() {
    kill -TERM "$backend"
    wait "$backend" || complain "a push was never answered"
}

check_pushes() { # OPTION…: of pushes.py
    rows | python3 "$faults/pushes.py" check "$notes" "$@" || complain "a promise was broken"
}

database() { # PSQL-OPTION…: as the owner, on the primary
    PGPASSWORD=$(cat "$MSS_STACK_FOLDER/secrets/postgres_owner") PGTARGETSESSIONATTRS=read-write \
        psql -X -qAt -F $'\t' -h "${database_host:-127.0.0.1}" -p "$MSS_STACK_POSTGRES_PORT" -U mss mss "$@"
}

rows() { # the pushes in the database
    database -c "SELECT c.target, o.third_message_id, o.oplog_id FROM oplog o JOIN channel c USING (channel_id)
        WHERE c.biz_type = 'UCHAT'"
}
