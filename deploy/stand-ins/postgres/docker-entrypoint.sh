#!/bin/bash
# A stand-in for the entrypoint of the official image postgres. It does what docker-compose.yml needs: as the server's
# user it makes the cluster in an empty data folder, runs the scripts of /docker-entrypoint-initdb.d, and serves.
set -euo pipefail
if [ "$(id -u)" = 0 ]; then
    echo "a stand-in for the image postgres: $(postgres --version)" >&2
    POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export POSTGRES_PASSWORD
    chown postgres:postgres "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086 # it is a list of arguments
    initdb --username=postgres --pwfile=<(echo "$POSTGRES_PASSWORD") ${POSTGRES_INITDB_ARGS:-}
    pg_ctl --wait start --options="-c listen_addresses='' $(printf '%q ' "${@:2}")"
    for script in /docker-entrypoint-initdb.d/*.sh; do "$script"; done
    pg_ctl --wait --mode=fast stop
fi
unset POSTGRES_PASSWORD
exec "$@"
