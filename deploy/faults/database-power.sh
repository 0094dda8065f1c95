#!/usr/bin/env bash
# The power of the machine that a local stack's PostgreSQL runs on (MSS_STACK_FOLDER names the stack's folder).
#   database-power.sh off          every process of the server is gone at once, and is not started; when the server's
#                                  folder is a disk of disk.sh, unflushed data is gone too
#   database-power.sh on [DISK]    that disk is there again; the supervisor starts the server
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/scripts/stack.sh
source deploy/scripts/stack.sh
disk=deploy/faults/disk.sh
folder=$(realpath "$stack/postgres")
read -r supervisor _ < "$stack/run/postgres.supervisor"
case ${1:?see the header} in
off)
    has_disk=''
    mountpoint -q "$folder" && has_disk=yes
    # A machine without power starts nothing.
    kill -STOP "$supervisor"
    [ -z "$has_disk" ] || "$disk" cut "$folder"
    deploy/faults/kill-database.sh "$folder"
    [ -z "$has_disk" ] || "$disk" unmount "$folder"
    ;;
on)
    [ -z "${2:-}" ] || "$disk" mount "$2" "$folder"
    kill -CONT "$supervisor"
    ;;
*) echo "unknown verb $1; see the header" >&2; exit 64 ;;
esac
