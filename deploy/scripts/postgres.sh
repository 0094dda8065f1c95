#!/usr/bin/env bash
# A private PostgreSQL server in a folder, for the local stack and for tests; loopback only.
#   postgres.sh init DIR PORT [PASSWORD]   make the cluster; PASSWORD is the file of user mss's; without all are trusted
#   postgres.sh tls DIR TLS                from now on it takes TLS alone, with TLS/postgres.pem and its key
#   postgres.sh standby DIR OF HOST PORT   make a standby of the running server in OF, which is at HOST; serves at PORT
#   postgres.sh run DIR                    serve in the foreground (exec), after removing the remains of a killed server
#   postgres.sh ready DIR                  exit 0 when it answers
#   postgres.sh create-database DIR NAME   make a database, unless it is there
#   postgres.sh program DIR NAME ARGUMENT… run a program of the server's version, for example pg_controldata
# SERVERS_ROOT: a folder with the files of another Debian, whose server is used (servers-root.sh).
set -euo pipefail
if [ -n "${SERVERS_ROOT:-}" ]; then
    exec chroot "$SERVERS_ROOT" env --unset=SERVERS_ROOT --chdir="$PWD" "$(realpath "$0")" "$@"
fi
verb=${1:?see the header} dir=$(realpath -m "${2:?DIR is missing}")

bin() { # the server's programs; Debian keeps them out of the PATH
    local found=(/usr/lib/postgresql/*/bin)
    [ -x "${found[-1]}/postgres" ] || { echo "PostgreSQL is missing: apt-get install postgresql" >&2; exit 69; }
    echo "${found[-1]}"
}

as_owner() { # PostgreSQL refuses to run as root
    if [ "$(id -u)" = 0 ]; then
        exec setpriv --reuid=postgres --regid=postgres --init-groups -- env HOME="$dir" "$@"
    else
        exec "$@"
    fi
}

make_reachable() { # the server's user must own its folder, and be able to walk down to it
    [ "$(id -u)" = 0 ] || return 0
    chown -R postgres:postgres "$dir"
    local parent
    parent=$(dirname "$dir")
    while [ "$parent" != / ]; do chmod a+x "$parent"; parent=$(dirname "$parent"); done
}

port_of() { # DIR
    sed -n 's/^port = //p' "$1/data/postgresql.conf" | tail -n 1
}

case $verb in
init)
    [ -f "$dir/data/PG_VERSION" ] && exit 0
    port=${3:?PORT is missing} password=${4:-}
    mkdir -p "$dir/sock"
    umask 077
    # The server's user cannot read the original.
    if [ -n "$password" ]; then cp "$password" "$dir/password"; else echo unused > "$dir/password"; fi
    make_reachable
    cd "$dir"
    auth=trust
    [ -z "$password" ] || auth=scram-sha-256
    (as_owner "$(bin)/initdb" -D "$dir/data" -U mss --pwfile="$dir/password" -A "$auth" -E UTF8 --locale=C.UTF-8 \
        --data-checksums > "$dir/initdb.log" 2>&1) || { cat "$dir/initdb.log" >&2; exit 70; }
    cat >> "$dir/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$dir/sock'
shared_buffers = 256MB
max_wal_size = 4GB
max_connections = 200
fsync = on
synchronous_commit = on
log_line_prefix = '%m [%p] %q%a '
CONF
    ;;
tls)
    tls=$(realpath "${3:?TLS is missing}")
    cd "$dir/data"
    owner=$(stat -c %U:%G PG_VERSION)
    # The server's user cannot read the originals, and takes no key that others may read.
    install -m 600 "$tls/postgres.key" server.key
    install -m 644 "$tls/postgres.pem" server.crt
    [ "$(id -u)" != 0 ] || chown "$owner" server.key server.crt
    sed -i 's/^host /hostssl /' pg_hba.conf
    grep -q '^ssl = on' postgresql.conf || echo 'ssl = on' >> postgresql.conf
    pid=$(head -n 1 postmaster.pid 2> /dev/null || true)
    # A killed server's number may be another process's by now.
    if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "$dir/data" ]; then kill -HUP "$pid"; fi
    ;;
standby)
    of=$(realpath "${3:?OF is missing}") host=${4:?HOST is missing} port=${5:?PORT is missing}
    mkdir -p "$dir/sock"
    cp "$of/password" "$dir/password"
    make_reachable
    cd "$dir"
    PGPASSWORD=$(cat "$dir/password")
    export PGPASSWORD
    (as_owner "$(bin)/pg_basebackup" -h "$host" -p "$(port_of "$of")" -U mss -D "$dir/data" --checkpoint=fast \
        --wal-method=stream --write-recovery-conf)
    printf '%s\n' "port = $port" "unix_socket_directories = '$dir/sock'" >> "$dir/data/postgresql.conf"
    ;;
run)
    cd "$dir"
    # Children of a killed server hold its shared memory until they notice; a new one refuses to start before.
    pid=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null || true)
    if [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null; then
        for _ in $(seq 100); do
            left=$(pgrep -f "^postgres: " -u "$(stat -c %U "$dir/data")" | while read -r child; do
                [ "$(readlink "/proc/$child/cwd" 2>/dev/null)" = "$dir/data" ] && echo "$child"
            done || true)
            [ -n "$left" ] || break
            # shellcheck disable=SC2086 # one pid a word
            kill -QUIT $left 2>/dev/null || true
            sleep 0.1
        done
    fi
    as_owner "$(bin)/postgres" -D "$dir/data"
    ;;
create-database)
    port=$(port_of "$dir")
    PGPASSWORD=$(cat "$dir/password")
    export PGPASSWORD
    query="SELECT 1 FROM pg_database WHERE datname = '${3:?NAME is missing}'"
    exists=$("$(bin)/psql" -h 127.0.0.1 -p "$port" -U mss -d postgres -Atqc "$query")
    [ -n "$exists" ] || "$(bin)/createdb" -h 127.0.0.1 -p "$port" -U mss "$3"
    ;;
program)
    cd "$dir"
    as_owner "$(bin)/${3:?NAME is missing}" "${@:4}"
    ;;
ready)
    port=$(port_of "$dir")
    "$(bin)/pg_isready" -q -h 127.0.0.1 -p "$port" -U mss -d postgres
    ;;
*) echo "unknown verb $verb; see the header" >&2; exit 64 ;;
esac
