#!/usr/bin/env bash
# A session holds a lock on the oplog for 90 s, as a dump does, while the partitions of the coming weeks are missing and
# are made every second: pushes may have a p99 of at most twice the one without. The partitions must be there while
# the lock is held. Release build, a stack of its own that is gone afterwards; about three minutes.
#   maintenance-lock.sh [RATE]     pushes a second: 300
set -euo pipefail
cd "$(dirname "$0")/../.."
rate=${1:-300}
# shellcheck source=deploy/faults/machine.sh
source deploy/faults/machine.sh
start_stack --plain --scale ingest=2 --scale writer=2 --scale gateway=2
stop_stack() {
    kill -KILL "${holder:-}" "${maker:-}" 2> /dev/null || true
    deploy/down > /dev/null
    rm -rf "$folder"
}

measure() { # NAME: a minute of pushes to a thousand connected devices
    cat > "$folder/$1.json" <<JSON
{"name": "$1", "users": 1000, "steps": [
    {"do": "connect", "concurrency": 70}, {"do": "push", "rate": $rate, "seconds": 60}]}
JSON
    load --scenario "$folder/$1.json" --no-resources --report "$folder/$1-report.json" > "$folder/$1.log" 2>&1 || {
        cat "$folder/$1.log"
        complain "a push was lost or doubled"
    }
}

partitions() { database -c "SELECT count(*) FROM pg_inherits WHERE inhparent = 'oplog'::regclass"; }

measure usual
# As if three weeks had begun at once.
database -c "DO \$\$ BEGIN FOR week IN 1..3 LOOP
    EXECUTE format('DROP TABLE %I', oplog_partition(oplog_week(week))); END LOOP; END \$\$"
missing=$(partitions)
database -c "SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0; BEGIN;
    LOCK TABLE oplog IN ACCESS SHARE MODE; SELECT pg_sleep(90); COMMIT" > /dev/null &
holder=$!
# More often than any writer does.
while sleep 1; do database -c "SET ROLE mss_writer; SELECT ensure_oplog_partitions(3)" > /dev/null 2>&1 || true; done &
maker=$!
measure locked
made=$(partitions)
kill -0 "$holder" || complain "the lock was not held to the end"
echo "partitions: $missing before, $made while the lock was held"
[ "$made" -eq $((missing + 3)) ] || complain "the partitions were not made"
python3 - "$folder/usual-report.json" "$folder/locked-report.json" <<'PYTHON' || complain "pushes were too slow"
import json, sys
usual, locked = (json.load(open(path))["steps"][1]["streams"][0]["postToDevice"]["p99"] for path in sys.argv[1:])
print(f"pushes, p99: {usual:.1f} ms usually, {locked:.1f} ms with the lock")
sys.exit(locked > 2 * usual)
PYTHON
