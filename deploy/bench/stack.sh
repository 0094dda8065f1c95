# shellcheck shell=bash
# A local stack for one benchmark, in a folder and on ports of its own, gone when the shell ends. Sourced, not run;
# MSS_STACK_CONFIGURATION says which build: release, which is built unless it is named, or debug, which must be there.
folder=$(mktemp -d)
export MSS_STACK_FOLDER="$folder/stack"
stop_stack() {
    deploy/down --wipe > /dev/null
    rm -rf "$folder"
}
trap stop_stack EXIT
port=$(deploy/scripts/free-ports.sh 36)
# Three ports after those of the API and of devices, for more of each; the last two are for tenants of a run itself.
export MSS_STACK_API_PORT=$port MSS_STACK_DEVICE_PORT=$((port + 4)) MSS_STACK_CONSOLE_PORT=$((port + 8)) \
    MSS_STACK_POSTGRES_PORT=$((port + 9)) MSS_STACK_RABBITMQ_PORT=$((port + 10)) \
    MSS_STACK_TENANT_PORT=$((port + 13)) MSS_STACK_HEALTH_PORT=$((port + 14))

start_stack() { # OPTION…: deploy/up with these
    deploy/up --detach "$@" > "$folder/up.log" 2>&1 || { cat "$folder/up.log" >&2; exit 69; }
}

load() { # OPTION…: mssctl load on it
    MSS_CONFIG_FILE="$MSS_STACK_FOLDER/mssctl.json" ".build/${MSS_STACK_CONFIGURATION:-release}/mssctl" load \
        --stack "$MSS_STACK_FOLDER" --ca "$MSS_STACK_FOLDER/tls/ca.pem" --api "127.0.0.1:$MSS_STACK_API_PORT" \
        --gateway "127.0.0.1:$MSS_STACK_DEVICE_PORT" "$@"
}

memory() { # FIELD: the time, and for each process with its children, but the tests' tenant, a line NAME=KILOBYTES
    # Pss counts shared memory once, Pss_Anon leaves out files and PostgreSQL's shared buffers.
    local child pids pid
    date +time=%s
    for child in "$MSS_STACK_FOLDER"/run/*.child; do
        pids=$(cut -d' ' -f1 "$child")
        # A process of PostgreSQL may have ended by now.
        for pid in $pids $(pgrep -P "$pids"); do cat "/proc/$pid/smaps_rollup" 2> /dev/null || true; done |
            awk -v name="$(basename "$child" .child)" -v field="$1:" \
                '$1 == field { sum += $2 } END { if (name != "tenant") print name "=" sum + 0 }'
    done
}
