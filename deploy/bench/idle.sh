#!/usr/bin/env bash
# The bytes of an idle device's connection in an hour, at the heartbeat of the running gateway.
#   idle.sh [MINUTES]     on the local stack (deploy/up --detach); 5 by default, counted up to an hour
set -euo pipefail
cd "$(dirname "$0")/../.."
minutes=${1:-5}
port=${MSS_BENCH_DEVICE_PORT:-7443}
store=$(mktemp -d)
.build/release/mssctl listen --instance demo_app --user idle --device "idle-$$" --session s1 --port "$port" \
    --store "$store/store.sqlite" > /dev/null 2>&1 &
device=$!
trap 'kill "$device" 2> /dev/null; rm -rf "$store"' EXIT
sleep 5
# Of the device's end: bytes and segments in both directions, retransmissions included.
counted() {
    ss -tinpOH state established "dport = :$port" | grep "pid=$device," |
        sed -E 's/.*bytes_sent:([0-9]+).*bytes_received:([0-9]+).*segs_out:([0-9]+).*segs_in:([0-9]+).*/\1 \2 \3 \4/'
}
read -r sent received out in < <(counted)
echo "connected: $((sent + received)) bytes of TLS in $((out + in)) segments, the handshake included"
sleep $((minutes * 60))
read -r sent2 received2 out2 in2 < <(counted)
bytes=$(((sent2 - sent + received2 - received) * 60 / minutes))
segments=$(((out2 - out + in2 - in) * 60 / minutes))
# 20 bytes of IPv4, 20 of TCP, 12 of its timestamps.
echo "idle, in an hour: $bytes bytes of TLS in $segments segments, with IP and TCP headers $((bytes + 52 * segments))"
