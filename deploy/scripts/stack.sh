# shellcheck shell=bash
# Shared by deploy/up and deploy/down: the place of the local stack, its addresses, its processes. Sourced, not run.
# shellcheck disable=SC2034 # the variables are for those that source it

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scripts="$root/deploy/scripts"
stack=${MSS_STACK_FOLDER:-$root/.local}

# Every address can be set.
api_port=${MSS_STACK_API_PORT:-7080}           # further ingests have the next three
device_port=${MSS_STACK_DEVICE_PORT:-7443}     # further gateways have the next three
console_port=${MSS_STACK_CONSOLE_PORT:-7090}
postgres_port=${MSS_STACK_POSTGRES_PORT:-7432}
rabbitmq_port=${MSS_STACK_RABBITMQ_PORT:-7672} # and the two after it; of a cluster also those 26 to 30 after it
# Of health: validator, statistics, console, then four each of ingest, writer and gateway, the notifier, three further
# relays, and the first one (7189).
health_port=${MSS_STACK_HEALTH_PORT:-7170}
tenant_port=${MSS_STACK_TENANT_PORT:-7190}
# The folder of a build, also of another checkout. A release's archive has its programs in bin.
binaries=$root/bin
[ -x "$binaries/mssctl" ] || binaries=$root/.build/${MSS_STACK_CONFIGURATION:-release}
binaries=${MSS_STACK_BINARIES:-$binaries}

started_at() { # when a process began, in clock ticks since boot: a pid alone may have been given to another
    awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$1/stat" 2>/dev/null
}

is_running() { # NAME: our supervisor of that name lives
    local pid ticks
    [ -f "$stack/run/$1.supervisor" ] || return 1
    read -r pid ticks < "$stack/run/$1.supervisor"
    [ -n "$pid" ] && [ "$(started_at "$pid")" = "$ticks" ]
}

supervise() { # NAME COMMAND…: start it supervised, detached from this shell and its descriptors
    rm -f "$stack/run/$1".*
    setsid --fork "$scripts/supervise.sh" "$@" > /dev/null 2>&1 < /dev/null 9>&-
    for _ in $(seq 100); do
        is_running "$1" && return
        sleep 0.05
    done
    echo "the supervisor of $1 did not start" >&2
    return 69
}

stop_supervised() { # NAME
    local pid ticks
    is_running "$1" || { rm -f "$stack/run/$1".*; return 0; }
    read -r pid ticks < "$stack/run/$1.supervisor"
    kill -TERM "$pid"
    for _ in $(seq 350); do
        [ "$(started_at "$pid")" = "$ticks" ] || break
        sleep 0.1
    done
    rm -f "$stack/run/$1".*
}
