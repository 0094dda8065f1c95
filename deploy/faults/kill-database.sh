#!/usr/bin/env bash
# Ends every process of a PostgreSQL server at once, and waits until the last is gone.
#   kill-database.sh DIR     as postgres.sh has it
set -euo pipefail
data=$(realpath "${1:?DIR is missing}/data")
while true; do
    mapfile -t processes < <(find /proc -maxdepth 2 -name cwd -lname "$data" 2> /dev/null | cut -d/ -f3)
    [ "${#processes[@]}" -gt 0 ] || break
    kill -KILL "${processes[@]}" 2> /dev/null || true
done
