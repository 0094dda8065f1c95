# shellcheck shell=bash
# Shared by the scripts that cut networks: machines as network namespaces on switches. Sourced after machine.sh, whose
# `own_network=yes` puts the script into a network of its own; its addresses are gone with it. Needs iproute2.
ip link set lo up
# `ip netns` keeps its names in this folder, which is this mount namespace's own.
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns

make_switch() { # NAME [ADDRESS/BITS]: the address is that of this script's processes on it
    ip link add "$1" type bridge
    [ -z "${2:-}" ] || ip addr add "$2" dev "$1"
    ip link set "$1" up
}

make_machine() { # NAME
    ip netns add "$1"
    ip -n "$1" link set lo up
}

plug() { # MACHINE SWITCH ADDRESS/BITS
    ip link add "$2-$1" type veth peer name "$2" netns "$1"
    ip -n "$1" addr add "$3" dev "$2"
    ip -n "$1" link set "$2" up
    ip link set "$2-$1" up
    heal_link "$1" "$2"
}

# No machine is told that a link is cut: packets get lost.
cut_link() { ip link set "$2-$1" nomaster; }    # MACHINE SWITCH
heal_link() { ip link set "$2-$1" master "$2"; } # MACHINE SWITCH

on() { ip netns exec "$@"; } # MACHINE COMMAND…
