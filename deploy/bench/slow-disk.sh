#!/usr/bin/env bash
# How long devices need to connect when the database's disk is slow, on a stack of its own, which is gone afterwards.
#   slow-disk.sh [MILLISECONDS [DEVICES]]
# Each flush of PostgreSQL takes MILLISECONDS longer (100). DEVICES devices (300) of new users connect, 64 at a time,
# then leave and come back. Prints the report of the load; deploy/load/README.md explains it.
set -euo pipefail
milliseconds=${1:-100} devices=${2:-300}
if [ $# -gt 2 ] || ! [[ $milliseconds$devices =~ ^[0-9]+$ ]]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 64
fi
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh

library=$MSS_STACK_FOLDER/machine_faults.so faults=$MSS_STACK_FOLDER/machine_faults
mkdir -p "$MSS_STACK_FOLDER/settings"
# PostgreSQL can run as a user of its own.
chmod a+rx "$folder" "$MSS_STACK_FOLDER"
deploy/faults/machine-faults.sh build "$library"
deploy/faults/machine-faults.sh set "$faults" 0 "$milliseconds"
chmod a+r "$faults"
printf 'LD_PRELOAD=%s\nMACHINE_FAULTS=%s\n' "$library" "$faults" > "$MSS_STACK_FOLDER/settings/postgres"
start_stack --plain
load --scenario deploy/load/connects.json --devices "$devices" --no-resources
