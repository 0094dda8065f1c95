#!/usr/bin/env bash
# Compares two builds, or a build with the bare chain, in one run: the ratios first / second of rate, latency and
# processor time, with intervals. On stacks of its own, which are gone afterwards; about two minutes for each scenario.
#   ratio.sh [--samples DIRECTORY] BUILD_DIRECTORY [BUILD_DIRECTORY | floor] [SCENARIO…]
#   ratio.sh [--samples DIRECTORY] --planted MICROSECONDS BUILD_DIRECTORY [SCENARIO…]
#   ratio.sh [--samples DIRECTORY] --stores NUMBER BUILD_DIRECTORY [SCENARIO…]
# Scenarios: closed (the highest rate), 200, 1000, 3000 (pushes a second, open loop); all by default. Without a second
# build, the second is the bare chain (floor). With --planted the first is a bare chain too, whose writer wastes so much
# processor time for each push: a test of the comparison itself. With --stores the second is the same build with NUMBER
# store schemas (1 to 8). The samples stay in .local/ratio, unless another directory is given. deploy/bench/README.md
# explains the report. The machine should do nothing else meanwhile.
set -euo pipefail
usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 64; }
samples='' planted='' stores='' builds=() scenarios=() against=''
while [ $# -gt 0 ]; do
    case $1 in
    --samples) samples=$(realpath -m "${2:?which directory}"); shift ;;
    --planted) planted=${2:?how many microseconds}; shift ;;
    --stores) stores=${2:?how many stores}; shift ;;
    closed | 200 | 1000 | 3000) scenarios+=("$1") ;;
    floor) against=floor ;;
    *)
        [ -x "$1/mssctl" ] || usage
        builds+=("$(realpath "$1")")
        ;;
    esac
    shift
done
[ -z "$stores" ] || { [[ $stores =~ ^[1-8]$ ]] && [ ${#builds[@]} = 1 ] && [ -z "$against$planted" ]; } || usage
[ ${#builds[@]} = 1 ] || { [ ${#builds[@]} = 2 ] && [ -z "$against$planted" ]; } || usage
[ ${#scenarios[@]} -gt 0 ] || scenarios=(closed 200 1000 3000)
first=${builds[0]} second=${builds[1]:-${stores:+${builds[0]}}}
cd "$(dirname "$0")/../.."
samples=${samples:-$PWD/.local/ratio}
mkdir -p "$samples"
[ "$(ulimit -n)" -ge 20000 ] || ulimit -n 20000

# The first stack.
export MSS_STACK_BINARIES=$first
# shellcheck source=deploy/bench/stack.sh
source deploy/bench/stack.sh
# shellcheck source=deploy/scripts/stack.sh
source deploy/scripts/stack.sh
second_stack() { # COMMAND…: with the folder, the ports and the build of the second stack
    (
        stack_ports "$second_port"
        MSS_STACK_FOLDER="$folder/second" MSS_STACK_BINARIES="$second" "$@"
    )
}
stop_all() {
    for name in {bare,planted}-{ingest,writer,gateway}; do stop_supervised "$name"; done
    [ -z "${second_port:-}" ] || second_stack deploy/down --wipe > /dev/null
    stop_stack
}

describe() { # NAME API_PORT DEVICE_PORT STACK DATABASE PROCESS…: a side, for mssctl ratio
    python3 - "$@" <<'PYTHON'
import json, sys
name, api, gateway, stack, database, *processes = sys.argv[1:]
print(json.dumps({
    "name": name, "api": f"127.0.0.1:{api}", "gateway": f"127.0.0.1:{gateway}", "ca": f"{stack}/tls/ca.pem",
    "stack": stack, "database": database, "processes": processes}, indent=2))
PYTHON
}
service() { # NAME: the side of the stack that the environment names; the demo tenant is not a part of it
    local processes=()
    for child in "$MSS_STACK_FOLDER"/run/*.child; do processes+=("$(basename "$child" .child)"); done
    mapfile -t processes < <(printf '%s\n' "${processes[@]}" | grep -vx tenant)
    describe "$1" "$MSS_STACK_API_PORT" "$MSS_STACK_DEVICE_PORT" "$MSS_STACK_FOLDER" mss "${processes[@]}"
}

until_stored() { # NAME API_PORT: the bare chain stores a push
    for _ in $(seq 150); do
        if curl -fsS -m 2 "http://127.0.0.1:$2/webapi/sync/single" \
            -d '{"linkToken":"ready","thirdMsgId":"ready","payload":"ready"}' 2> /dev/null | grep -q SUCCESS; then
            return
        fi
        sleep 0.2
    done
    echo "ratio.sh: the bare chain does not answer; the end of its logs:" >&2
    tail -n 5 "$stack/log/$1"-*.log >&2
    exit 70
}
bare_chain() { # NAME NUMBER WASTED: starts one on the broker and the cluster of the first stack, and prints its side
    local name=$1 api=$((MSS_STACK_API_PORT + $2)) device=$((MSS_STACK_DEVICE_PORT + $2))
    local chain=(env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 MSS_CONFIG_FILE="$stack/mssctl.json"
        MSS_AMQP_VHOST="$name" MSS_POSTGRES_DATABASE="$name" "$first/mssctl" floor)
    "$scripts/rabbitmq.sh" ctl "$stack/rabbitmq" add_vhost "$name" > /dev/null
    "$scripts/rabbitmq.sh" ctl "$stack/rabbitmq" set_permissions -p "$name" tool '.*' '.*' '.*' > /dev/null
    "$scripts/postgres.sh" create-database "$stack/postgres" "$name"
    supervise "$name-writer" "${chain[@]}" writer --waste-microseconds "$3"
    supervise "$name-gateway" "${chain[@]}" gateway --port "$device" --certificate "$stack/tls/server.pem" \
        --private-key "$stack/tls/server.key"
    supervise "$name-ingest" "${chain[@]}" ingest --port "$api"
    until_stored "$name" "$api"
    describe "bare chain, $3 µs wasted for each push" "$api" "$device" "$stack" "$name" \
        "$name-ingest" "$name-writer" "$name-gateway" postgres rabbitmq
}

trap stop_all EXIT
start_stack --plain
service "$first" > "$folder/first.json"
if [ -n "$second" ]; then
    second_port=$(deploy/scripts/free-ports.sh 41)
    second_stack start_stack --plain ${stores:+--stores "$stores"}
    second_stack service "$second${stores:+, stores: $stores}" > "$folder/second.json"
else
    bare_chain bare 1 0 > "$folder/second.json"
fi
[ -z "$planted" ] || bare_chain planted 2 "$planted" > "$folder/first.json"

failed=0
for scenario in "${scenarios[@]}"; do
    pace=(--rate "$scenario")
    [ "$scenario" != closed ] || pace=(--window 1000)
    "$first/mssctl" ratio measure --first "$folder/first.json" --second "$folder/second.json" "${pace[@]}" \
        --samples "$samples/$scenario.json" || failed=1
    echo
done
[ "$failed" = 0 ]
