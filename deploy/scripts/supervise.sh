#!/usr/bin/env bash
# Keeps a process running, as a container platform would: starts it again when it dies, after a pause that grows from
# 0.2 s to 5 s and begins anew once it has lived for 10 s. SIGTERM ends both, the process gracefully (30 s, then KILL).
#   supervise.sh NAME COMMAND [ARGUMENT…]   logs to log/NAME.log of the stack's folder, pids in run/NAME.*
set -uo pipefail
# shellcheck source=deploy/scripts/stack.sh
source "$(dirname "$0")/stack.sh"
name=$1
shift
# Closes the descriptors of the caller of deploy/up, which may wait for their end. 255 is this script.
for path in "/proc/$$/fd/"*; do
    descriptor=${path##*/}
    [ "$descriptor" -le 2 ] || [ "$descriptor" = 255 ] || exec {descriptor}>&-
done
log="$stack/log/$name.log" child_file="$stack/run/$name.child"
echo "$$ $(started_at $$)" > "$stack/run/$name.supervisor"
child='' stopping=''

stop() {
    stopping=yes
    [ -n "$child" ] || return
    kill -TERM "$child" 2>/dev/null
    for _ in $(seq 300); do
        kill -0 "$child" 2>/dev/null || return
        sleep 0.1
    done
    kill -KILL "$child" 2>/dev/null
}
trap stop TERM INT

pause=0.2
while [ -z "$stopping" ]; do
    # A log that has grown large moves aside; one old one is kept.
    [ "$(stat -c %s "$log" 2>/dev/null || echo 0)" -lt 50000000 ] || mv -f "$log" "$log.1"
    started=$SECONDS
    "$@" >> "$log" 2>&1 < /dev/null &
    child=$!
    echo "$child" > "$child_file"
    wait "$child"
    status=$?
    # A signal to this script ends the wait as well.
    while kill -0 "$child" 2>/dev/null; do
        wait "$child"
        status=$?
    done
    [ -z "$stopping" ] || break
    if [ $((SECONDS - started)) -ge 10 ]; then pause=0.2; fi
    echo "supervise: $name ended with status $status, starting it again in $pause s" >> "$log"
    sleep "$pause"
    pause=$(awk -v pause="$pause" 'BEGIN { pause *= 2; print (pause > 5 ? 5 : pause) }')
done
rm -f "$child_file" "$stack/run/$name.supervisor"
