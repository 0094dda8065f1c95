#!/usr/bin/env bash
# A RabbitMQ cluster of three nodes with quorum queues, while a backend pushes to devices: each node is killed in turn,
# frozen for 15 s in turn and then restarted, and stopped and started in turn, as for an upgrade. A node of RabbitMQ
# 3.10 that was frozen stays apart from the others until it is restarted. Each push that was answered reaches its
# device, once and in order. Prints for each fault the longest time without an answer and the slowest call, and fails
# above 5 s. Release build, root, a stack of its own that is gone afterwards.
#   broker-cluster.sh [kill] [freeze] [roll]     all three by default
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/faults/servers.sh
source deploy/faults/servers.sh
faults_wanted=("$@")
[ $# -gt 0 ] || faults_wanted=(kill freeze roll)

node_pid() { cat "$stack/run/rabbitmq-$1.child"; }
running_nodes() { # SEEN_BY
    deploy/scripts/rabbitmq.sh ctl "$stack/rabbitmq/$1" cluster_status --formatter json 2> /dev/null |
        python3 -c 'import json, sys; print(len(json.load(sys.stdin)["running_nodes"]))' 2> /dev/null || echo 0
}
is_whole() { for node in 1 2 3; do [ "$(running_nodes "$node")" = 3 ] || return 1; done; }
# A node that comes back needs some seconds until its queues have their replicas again.
heal() { await "the whole cluster" is_whole && sleep 5; }

start_stack --broker-cluster --scale ingest=2 --scale writer=2 --scale gateway=2
heal
start_devices cluster
start_pushing --prefix cluster --users "$users" --rate 50
await_pushes 200
instants=$folder/instants
begin() { # FAULT NODE: notes the instant, also in the logs, so that their lines can be compared with it
    echo "$(now) $*" >> "$instants"
    echo "$(date --utc +%T.%N) $*" >> "$stack/log/instants"
}
for fault in "${faults_wanted[@]}"; do
    for node in 1 2 3; do
        begin "$fault $node"
        case $fault in
        kill) kill -KILL "$(node_pid "$node")" ;;
        freeze)
            frozen=$(node_pid "$node")
            kill -STOP "$frozen"
            sleep 15
            kill -CONT "$frozen"
            sleep 5
            kill -KILL "$frozen"
            ;;
        roll) kill -TERM "$(node_pid "$node")" ;;
        *) complain "unknown fault $fault" ;;
        esac
        sleep 5
        heal
    done
done
stop_pushing
check_pushes --devices "$devices"
python3 "$faults/pushes.py" gaps "$notes" --limit 5 --limited kill,freeze,roll < "$instants" ||
    complain "a gap was too long"
