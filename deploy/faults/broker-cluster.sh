#!/usr/bin/env bash
# A RabbitMQ cluster of three nodes with quorum queues. While a backend pushes to devices, each node in turn has these
# faults:
#   kill        it is killed
#   freeze      it is frozen for 15 s and then restarted, as one of RabbitMQ 3.10 stays apart from the others until then
#   partition   it loses the link to the two others for 15 s and is then restarted, for the same reason; the service
#               reaches all three nodes meanwhile
#   roll        it is stopped and started, as for an upgrade
# Each push that was answered reaches its device, once and in order. Prints for each fault the longest time without an
# answer and the slowest call, and fails above 5 s, or when a connected device counted as offline (NOT_ONLINE). Release
# build, root, a stack and networks of its own that are gone afterwards.
#   broker-cluster.sh [FAULT…]     all four by default
set -euo pipefail
cd "$(dirname "$0")/../.."
deploy/scripts/packages.sh --run iproute2
# shellcheck disable=SC2034 # for machine.sh
own_network=yes
# shellcheck source=deploy/faults/servers.sh
source deploy/faults/servers.sh
# shellcheck source=deploy/faults/network.sh
source deploy/faults/network.sh
faults_wanted=("$@")
[ $# -gt 0 ] || faults_wanted=(kill freeze partition roll)

stop_stack() {
    kill -KILL "${backend:-}" "${listeners[@]}" 2> /dev/null || true
    deploy/down > /dev/null
    # What deploy/down does not reach: the epmd of each node.
    for node in 1 2 3; do ip netns pids "broker-$node" 2> /dev/null | xargs -r kill -KILL || true; done
    rm -rf "$folder"
}

node_pid() { cat "$stack/run/rabbitmq-$1.child"; }
running_nodes() { # SEEN_BY
    timeout 20 deploy/scripts/rabbitmq.sh ctl "$stack/rabbitmq/$1" cluster_status --formatter json 2> /dev/null |
        python3 -c 'import json, sys; print(len(json.load(sys.stdin)["running_nodes"]))' 2> /dev/null || echo 0
}
is_whole() { for node in 1 2 3; do [ "$(running_nodes "$node")" = 3 ] || return 1; done; }
# A node that comes back needs some seconds until its queues have their replicas again.
heal() { await "the whole cluster" is_whole && sleep 5; }

# The service reaches the nodes over one switch, and they reach each other over another one.
make_switch amqp 10.77.1.254/24
make_switch nodes
cp /etc/hosts "$folder/hosts"
# `ip netns exec` gives a namespace the files of this folder, whose content is this mount namespace's own.
mkdir -p /etc/netns
mount -t tmpfs tmpfs /etc/netns
for node in 1 2 3; do
    make_machine "broker-$node"
    plug "broker-$node" amqp "10.77.1.$node/24"
    plug "broker-$node" nodes "10.77.2.$node/24"
    echo "10.77.1.$node broker-$node" >> "$folder/hosts"
    mkdir "/etc/netns/broker-$node"
done
for node in 1 2 3; do
    sed -E 's/^10\.77\.1\.([123] broker-)/10.77.2.\1/' "$folder/hosts" > "/etc/netns/broker-$node/hosts"
done
mount --bind "$folder/hosts" /etc/hosts
echo '{}' > "$folder/definitions.json"
# deploy/up takes the cluster and the certificates that are there.
mkdir -p "$stack"
echo 3 > "$stack/brokers"
deploy/scripts/rabbitmq.sh cluster "$stack/rabbitmq" "$MSS_STACK_RABBITMQ_PORT" "$folder/definitions.json" \
    broker-{1,2,3}
deploy/scripts/certificates.sh "$MSS_STACK_FOLDER/tls" DNS:broker-{1,2,3}
start_stack --broker-cluster --scale ingest=2 --scale writer=2 --scale gateway=2
heal
start_devices cluster
# 300 workers: the backend goes on to push at 50 a second while other pushes wait for up to 6 s.
start_pushing --prefix cluster --users "$users" --rate 50 --workers 300
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
        partition)
            cut_link "broker-$node" nodes
            sleep 15
            [ "$(running_nodes $((node % 3 + 1)))" = 2 ] || complain "the others did not give node $node up"
            heal_link "broker-$node" nodes
            sleep 5
            kill -KILL "$(node_pid "$node")"
            ;;
        roll) kill -TERM "$(node_pid "$node")" ;;
        *) complain "unknown fault $fault" ;;
        esac
        sleep 5
        heal
    done
done
stop_pushing
# When the run has failed, these logs stay with the others.
for node in 1 2 3; do cp -r "$stack/rabbitmq/$node/log" "$stack/log/broker-$node"; done
check_pushes --devices "$devices"
python3 "$faults/pushes.py" gaps "$notes" --limit 5 --limited kill,freeze,partition,roll --not-online 0 \
    < "$instants" || complain "a gap was too long, or connected devices counted as offline"
