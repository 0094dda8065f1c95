#!/usr/bin/env bash
# Runs a command with PostgreSQL and RabbitMQ of another suite of Debian: postgres.sh and rabbitmq.sh then use those of
# a folder, which mmdebstrap makes in half a minute unless it is there. As root on Debian 12.
#   servers-root.sh SUITE COMMAND…     trixie: PostgreSQL 17, RabbitMQ 4.0; forky: PostgreSQL 18, RabbitMQ 4.3
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:?see the header}
[ $# -gt 1 ] || { echo "servers-root.sh: COMMAND is missing" >&2; exit 64; }
if [ "${SERVERS_ROOT:-}" != "$PWD/.local/servers/$suite" ]; then
    [ "$(id -u)" = 0 ] || { echo "servers-root.sh: it needs root" >&2; exit 69; }
    deploy/scripts/packages.sh mmdebstrap
    deploy/stand-ins/roots.sh servers .local/servers "$suite"
    SERVERS_ROOT=$PWD/.local/servers/$suite exec unshare --mount --propagation private \
        deploy/scripts/servers-root.sh "$@"
fi
# The folders of servers are at the same paths inside.
for path in /proc /dev /sys /tmp "${TMPDIR:-/tmp}" "$PWD"; do
    mkdir -p "$SERVERS_ROOT$path"
    mount --rbind "$path" "$SERVERS_ROOT$path"
done
# RabbitMQ looks up the name of its machine for every connection. An answer from DNS that is lost would cost 5 s.
mount --bind /etc/hosts "$SERVERS_ROOT/etc/hosts"
exec "${@:2}"
