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
stack_ports() { # FIRST: the ports of a stack are 41 in a row
    # Three ports after those of the API and of devices, for more of each; the last two are for tenants of a run itself.
    export MSS_STACK_API_PORT=$1 MSS_STACK_DEVICE_PORT=$(($1 + 4)) MSS_STACK_CONSOLE_PORT=$(($1 + 8)) \
        MSS_STACK_POSTGRES_PORT=$(($1 + 9)) MSS_STACK_RABBITMQ_PORT=$(($1 + 10)) \
        MSS_STACK_TENANT_PORT=$(($1 + 13)) MSS_STACK_HEALTH_PORT=$(($1 + 14))
}
port=$(deploy/scripts/free-ports.sh 41)
stack_ports "$port"

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
