#!/usr/bin/env bash
# Device operations: how many a second the service holds with a fast tenant, and those of another tenant
# while one is slow. On a stack of its own; each run checks that every operation was done once, in order, and
# that its result reached its device.
#   operations.sh [RATE] [SECONDS] [RUNS]      3,000 a second for 20 s, three times
# That many from devices that come back with sixteen things to send, and with four, and two thirds of it where each goes
# alone. A rate that is not held shows as latencies that grow with the run: both medians stand beside the seconds, which
# include one in which nothing comes any more.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
rate=${1:-3000} seconds=${2:-20} runs=${3:-3}
fast=$((port + 34)) slow=$((port + 35))
mkdir -p "$MSS_STACK_FOLDER/settings"
# A fast tenant takes more at a time than the default's 64.
cat > "$MSS_STACK_FOLDER/settings/relay-1" <<SETTINGS
MSS_RELAY_ALLOWED_HOSTS=http://127.0.0.1:$fast,http://127.0.0.1:$slow
MSS_RELAY_TENANT_CONCURRENCY=128
SETTINGS
start_stack --scale relay=1
cat > "$folder/tenants.json" <<JSON
{"instances": [
   {"instanceId": "bench_fast", "name": "Fast", "relayUrl": "http://127.0.0.1:$fast/operations"},
   {"instanceId": "bench_slow", "name": "Slow", "relayUrl": "http://127.0.0.1:$slow/operations"}],
 "configurations": [
   {"instanceId": "bench_fast", "bizType": "UCHAT", "description": "", "scope": "appointed", "target": "user",
    "multiDevice": true, "repush": "all"},
   {"instanceId": "bench_slow", "bizType": "UCHAT", "description": "", "scope": "appointed", "target": "user",
    "multiDevice": true, "repush": "all"}]}
JSON
MSS_CONFIG_FILE="$MSS_STACK_FOLDER/mssctl.json" ".build/${MSS_STACK_CONFIGURATION:-release}/mssctl" \
    apply "$folder/tenants.json" > "$folder/apply.log" 2>&1 || { cat "$folder/apply.log" >&2; exit 70; }

operate() { # INSTANCE TENANT_PORT RATE SECONDS OPTION…
    load --scenario "${scenario:-deploy/load/operations.json}" --instance "$1" --tenant-port "$2" --rate "$3" \
        --seconds "$4" "${@:5}"
}
figures() { # REPORT: one line of the last step
    python3 - "$1" <<'PYTHON'
import json, sys
step = json.load(open(sys.argv[1]))["steps"][-1]
found = step["operations"]
print(f"{found['toResult']['count'] / step['seconds']:.0f}/s over {step['seconds']:.1f} s; to taken p50 "
      f"{found['toTaken']['p50']:.1f} p99 {found['toTaken']['p99']:.1f} ms; to result p50 "
      f"{found['toResult']['p50']:.1f} p99 {found['toResult']['p99']:.1f} ms")
PYTHON
}

measure() { # NAME RATE: as often as is asked for
    local run
    for run in $(seq "$runs"); do
        operate bench_fast "$fast" "$2" "$seconds" --no-resources --report "$folder/$1-$run.json" \
            > "$folder/$1.log" || { cat "$folder/$1.log"; exit 1; }
        figures "$folder/$1-$run.json"
    done
}

operate bench_fast "$fast" 200 3 --no-resources > /dev/null # so that nothing is new to anybody
for burst in 16 4; do
    sed "s/\"burst\": [0-9]*/\"burst\": $burst/" deploy/load/operations-offline.json > "$folder/offline-$burst.json"
    echo "a fast tenant, $rate operations a second due for $seconds s, $burst of a device at once:"
    scenario=$folder/offline-$burst.json measure "offline-$burst" "$rate"
done
echo "the same with $((rate * 2 / 3)) a second, each by itself:"
measure single $((rate * 2 / 3))

# A slow tenant that is sent four times as much as it can do: 128 calls at a time of 4 s each.
few=$((rate / 10))
echo "$few operations a second of another tenant, alone:"
measure alone "$few"
operate bench_slow "$slow" 128 $((seconds * runs + 30)) --no-resources --devices 128 --tenant-delay 4000 \
    > "$folder/slow.log" 2>&1 &
slow_load=$!
sleep 10 # until its slots are taken and its line is long
echo "the same, while a tenant that takes 4 s for each is sent 128 a second:"
measure beside "$few"
kill "$slow_load" 2> /dev/null || true
wait "$slow_load" 2> /dev/null || true
python3 - "$folder" <<'PYTHON'
import glob, json, statistics, sys
def median(kind, quantile):
    return statistics.median(json.load(open(f))["steps"][-1]["operations"]["toResult"][quantile]
                             for f in glob.glob(f"{sys.argv[1]}/{kind}-*.json"))
for quantile in ("p50", "p99"):
    alone, beside = median("alone", quantile), median("beside", quantile)
    print(f"to result, {quantile}: {alone:.1f} ms alone, {beside:.1f} ms beside the slow tenant: "
          f"{beside / alone:.2f} times")
PYTHON
