#!/usr/bin/env bash
# Separate hosts on one machine, for tests: network namespaces with an address each, on a switch of their own that leads
# nowhere else. Root only; it takes iproute2 and nftables.
#   hosts.sh laboratory COMMAND…   runs a command in a namespace of its own with such a switch
#   hosts.sh host NAME PORT…       there: makes the host, unless it exists; NAME is in /etc/hosts of every host. Its
#                                  loopback address can be reached on these ports from the other hosts, and on the
#                                  laboratory's own loopback address, as behind a load balancer
set -euo pipefail
verb=${1:?see the header}
shift
network=10.77.0
names=/run/netns/names

rules() { # HOOK PRIORITY NAMESPACE: the chain of a namespace that rules are added to
    ip netns exec "$3" nft "add chain ip hosts $1 { type nat hook $1 priority $2; }"
}

case $verb in
laboratory)
    exec unshare --net --mount --propagation private -- "$0" inside "$@"
    ;;
inside)
    mkdir -p /run/netns /etc/netns
    mount -t tmpfs hosts /run/netns
    mount -t tmpfs hosts /etc/netns
    cp /etc/hosts "$names"
    mount --bind "$names" /etc/hosts
    ip link set lo up
    ip link add switch type bridge
    ip address add "$network.1/24" dev switch
    ip link set switch up
    # Loopback addresses are translated, so the kernel must not take them for a mistake.
    echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
    # The switch is to pass on frames, and not to look into them.
    [ ! -e /proc/sys/net/bridge ] || echo 0 > /proc/sys/net/bridge/bridge-nf-call-iptables
    nft add table ip hosts
    nft 'add chain ip hosts output { type nat hook output priority -100; }'
    nft 'add chain ip hosts prerouting { type nat hook prerouting priority -100; }'
    nft 'add chain ip hosts postrouting { type nat hook postrouting priority 100; }'
    nft add rule ip hosts prerouting ip daddr "$network.1" dnat to 127.0.0.1
    nft add rule ip hosts postrouting oifname switch masquerade
    MSS_TEST_HOSTS=$(realpath "$0") exec "$@"
    ;;
host)
    name=${1:?NAME is missing}
    shift
    if [ ! -e "/run/netns/$name" ]; then
        number=$(($(grep -c "^$network" "$names" || true) + 2))
        ip netns add "$name"
        mkdir -p "/etc/netns/$name"
        ln -s "$names" "/etc/netns/$name/hosts"
        echo "$network.$number $name" >> "$names"
        ip link add "host$number" type veth peer name eth0 netns "$name"
        ip link set "host$number" master switch up
        ip -n "$name" address add "$network.$number/24" dev eth0
        ip -n "$name" link set lo up
        ip -n "$name" link set eth0 up
        ip -n "$name" route add default via "$network.1"
        ip netns exec "$name" sh -c 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet'
        ip netns exec "$name" nft add table ip hosts
        ip netns exec "$name" nft 'add set ip hosts own { type inet_service; }'
        rules prerouting -100 "$name"
        rules input 100 "$name"
        rules output -100 "$name"
        rules postrouting 100 "$name"
        ip netns exec "$name" nft add rule ip hosts prerouting tcp dport @own dnat to 127.0.0.1
        # As if it came from a balancer on the same machine.
        ip netns exec "$name" nft add rule ip hosts input iifname eth0 snat to 127.0.0.1
        # Other services, such as the tenants, are in the laboratory.
        ip netns exec "$name" nft add rule ip hosts output ip daddr 127.0.0.1 tcp dport != @own dnat to "$network.1"
        ip netns exec "$name" nft add rule ip hosts postrouting oifname eth0 masquerade
    fi
    address=$(sed -n "s/ $name$//p" "$names")
    for port in "$@"; do
        ip netns exec "$name" nft add element ip hosts own "{ $port }"
        nft add rule ip hosts output ip daddr 127.0.0.1 tcp dport "$port" dnat to "$address"
    done
    ;;
*) echo "unknown verb $verb; see the header" >&2; exit 64 ;;
esac
