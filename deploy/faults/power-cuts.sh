#!/usr/bin/env bash
# Cuts the power of PostgreSQL's machine again and again while a backend pushes to a service with two of each process,
# which has to come back by itself; then every push that was answered must be there with its id. Release build, root, a
# stack of its own that is gone afterwards.
#   power-cuts.sh [CUTS]              50
#   power-cuts.sh [CUTS] --control    the server is told not to wait for its disk, after the service has looked: this
#                                     must fail, or the method finds nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
cuts=50 control=''
for argument in "$@"; do
    case $argument in --control) control=yes ;; *) cuts=$argument ;; esac
done
# shellcheck source=deploy/faults/machine.sh
source deploy/faults/machine.sh
disk="$folder/disk" data="$MSS_STACK_FOLDER/postgres"
stop_stack() {
    kill -KILL "${backend:-}" 2> /dev/null || true
    kill -CONT "$(cut -d' ' -f1 "$MSS_STACK_FOLDER/run/postgres.supervisor")" 2> /dev/null || true
    deploy/down > /dev/null
    umount "$data" 2> /dev/null || true
    rm -rf "$folder"
}
"$faults/disk.sh" make "$disk" 8000
"$faults/disk.sh" mount "$disk" "$data"
start_stack --scale ingest=2 --scale writer=2 --scale gateway=1
# The stack's own scripts did not wait for their writes.
sync --file-system "$data"
start_pushing --users 50
for cut in $(seq "$cuts"); do
    if [ -n "$control" ]; then
        database -c "ALTER SYSTEM SET synchronous_commit = off" -c "SELECT pg_reload_conf()" > /dev/null
    fi
    await_pushes 100
    # Forgotten by the next start: the server that runs reads its settings only when it is told to.
    [ -z "$control" ] || database -c "ALTER SYSTEM RESET synchronous_commit"
    sleep "$(awk -v seed="$cut" 'BEGIN { srand(seed); print rand() }')"
    "$faults/database-power.sh" off
    now >> "$folder/returns"
    "$faults/database-power.sh" on "$disk"
    await_database
done
await_pushes 100
stop_pushing
python3 "$faults/pushes.py" pauses "$notes" < "$folder/returns"
# shellcheck disable=SC2119 # no option: there are no devices
check_pushes
