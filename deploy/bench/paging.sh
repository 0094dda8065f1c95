#!/usr/bin/env bash
# How much memory gateway and writer take while one user pages through a large backlog under "All".
#   paging.sh [OPLOGS]     on the local stack (deploy/up --detach); 1,000,000 by default
# The backlog is written by SQL as pushes would leave it; a device then receives, stores and confirms all of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
count=${1:-1000000} user="page-$$"
# shellcheck source=deploy/bench/database.sh
source deploy/bench/database.sh
mssctl=.build/release/mssctl
"$mssctl" push --instance demo_app --biz-type UCHAT --to "$user" --id first first > /dev/null
psql -v count="$count" -v user="$user" <<'SQL'
-- By the database's first transaction, so neither the sweep nor the statistics take them for new ones.
INSERT INTO oplog (
    channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary, operating_system, minimum_version,
    maximum_version, share_start, share_size, valid_until, created_at, written_by)
SELECT c.channel_id, c.head + n, 'k' || n, n, convert_to('{"number":' || n || '}', 'UTF8'), false, 0, '', '', 0, 10000,
    now() + interval '1 day', now(), 3
FROM channel c, generate_series(1, :count - 1) n WHERE c.target = :'user';
UPDATE channel SET head = head + :count - 1 WHERE target = :'user';
SQL
resident() { # of a process, in MiB
    awk '/VmRSS/ { printf "%d", $2 / 1024 }' "/proc/$(pgrep -o -x "${1:0:15}")/status"
}
before_gateway=$(resident mss-gateway) before_writer=$(resident mss-oplog-writer)
start=$(date +%s%N)
"$mssctl" listen --instance demo_app --user "$user" --device "$user" --session s --count "$count" --fresh --json \
    > /dev/null 2>&1 &
device=$!
most_gateway=0 most_writer=0
while kill -0 "$device" 2> /dev/null; do
    gateway=$(resident mss-gateway) writer=$(resident mss-oplog-writer)
    [ "$gateway" -gt "$most_gateway" ] && most_gateway=$gateway
    [ "$writer" -gt "$most_writer" ] && most_writer=$writer
    sleep 1
done
wait "$device"
seconds=$((($(date +%s%N) - start) / 1000000000))
echo "$count oplogs received, stored and confirmed in $seconds s"
echo "resident: gateway $before_gateway MiB before, at most $most_gateway; writer $before_writer, at most $most_writer"
