#!/usr/bin/env bash
# A private RabbitMQ node in a folder, for the local stack and for tests; loopback only, except in a namespace.
#   rabbitmq.sh init DIR PORT [DEFINITIONS]   write its configuration; users, their rights, exchanges and queues are
#                                      those of the file (mssctl secrets), or the user is guest
#   rabbitmq.sh cluster DIR PORT DEFINITIONS [NAMESPACE NAMESPACE NAMESPACE]   the same for a cluster of three: DIR/1,
#                                      DIR/2 and DIR/3 are nodes, whose ports are PORT, PORT+26 and PORT+29; the first
#                                      must be ready before others run. With NAMESPACEs, each node runs in a network
#                                      namespace, whose name is the node's host name. The node listens on all
#                                      addresses there, and has an epmd of its own
#   rabbitmq.sh tls DIR TLS            from its next start on it takes TLS alone, with TLS/rabbitmq.pem and its key
#   rabbitmq.sh run DIR                    serve in the foreground (exec)
#   rabbitmq.sh ready DIR                  exit 0 when it answers
#   rabbitmq.sh ctl DIR ARGUMENT…          rabbitmqctl on it
# The distribution port is PORT+1. The port of epmd is PORT+2, in a cluster that of its first node.
# SERVERS_ROOT: a folder with the files of another Debian, whose server is used (servers-root.sh).
set -euo pipefail
verb=${1:?see the header} dir=$(realpath -m "${2:?DIR is missing}")
if [ -f "$dir/namespace" ] && [ -z "${IN_NAMESPACE:-}" ] && [[ $verb =~ ^(run|ready|ctl)$ ]]; then
    exec ip netns exec "$(cat "$dir/namespace")" env IN_NAMESPACE=yes "$0" "$@"
fi
if [ -n "${SERVERS_ROOT:-}" ]; then
    # The host names of the namespace, which has a mount namespace of its own.
    [ -z "${IN_NAMESPACE:-}" ] || mount --bind /etc/hosts "$SERVERS_ROOT/etc/hosts"
    exec chroot "$SERVERS_ROOT" env --unset=SERVERS_ROOT --chdir="$PWD" "$(realpath "$0")" "$@"
fi

cluster_options='-kernel net_ticktime 3 -kernel net_setuptime 1 -aten poll_interval 500'
cluster_options+=' -rabbit quorum_tick_interval 1000'
environment() {
    port=$(cat "$dir/port")
    epmd=$(cat "$dir/epmd" 2> /dev/null || echo $((port + 2)))
    host=$(cat "$dir/namespace" 2> /dev/null || echo localhost)
    export HOME="$dir/home" RABBITMQ_NODENAME="mss$port@$host" RABBITMQ_MNESIA_BASE="$dir/data"
    export RABBITMQ_LOG_BASE="$dir/log" RABBITMQ_CONFIG_FILE="$dir/rabbitmq.conf"
    export RABBITMQ_ENABLED_PLUGINS_FILE="$dir/enabled_plugins" RABBITMQ_PID_FILE="$dir/pid"
    export RABBITMQ_CONF_ENV_FILE="$dir/rabbitmq-env.conf" RABBITMQ_FEATURE_FLAGS_FILE="$dir/data/feature_flags"
    export RABBITMQ_DIST_PORT=$((port + 1)) ERL_EPMD_PORT=$epmd LC_ALL=C.UTF-8
    # One scheduler that does not spin: on a small machine a second one stalls deliveries for up to seconds.
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +sbwt none"
    [ "$host" != localhost ] || {
        export ERL_EPMD_ADDRESS=127.0.0.1
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS+=' -kernel inet_dist_use_interface {127,0,0,1}'
    }
    # The other nodes of a cluster give up a node that is silent for 2 to 4 s. Its quorum queues get a leader before.
    # An attempt to reach a node that is cut off or frozen makes a process of the broker wait for at most 1 s, not 7.
    [ ! -f "$dir/epmd" ] || RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS+=" $cluster_options"
}

server() { # the package's own wrapper in the PATH changes user and loses HOME
    local found=(/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin)
    echo "${found[-1]}"
}

case $verb in
init)
    port=${3:?PORT is missing} definitions=${4:-}
    # Loaded at every start: a newer build may bring others.
    mkdir -p "$dir"
    [ -z "$definitions" ] || install -m 600 "$definitions" "$dir/definitions.json"
    [ -f "$dir/port" ] && exit 0
    [ -d "$(server)" ] || { echo "RabbitMQ is missing: apt-get install rabbitmq-server" >&2; exit 69; }
    umask 077
    mkdir -p "$dir/home" "$dir/data" "$dir/log"
    : > "$dir/rabbitmq-env.conf"
    echo '[].' > "$dir/enabled_plugins"
    cat > "$dir/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$port
log.file.level = warning
disk_free_limit.absolute = 200MB
CONF
    [ -z "$definitions" ] || echo "load_definitions = $dir/definitions.json" >> "$dir/rabbitmq.conf"
    echo "$port" > "$dir/port"
    ;;
cluster)
    port=${3:?PORT is missing} definitions=${4:?DEFINITIONS are missing}
    umask 077
    [ -f "$dir/cookie" ] || { mkdir -p "$dir" && openssl rand -hex 16 > "$dir/cookie"; }
    ports=("$port" $((port + 26)) $((port + 29))) namespaces=("${@:5:3}")
    [[ ${#namespaces[@]} =~ ^[03]$ ]] || { echo "rabbitmq.sh: it takes no or three namespaces" >&2; exit 64; }
    for number in 1 2 3; do
        node=$dir/$number
        is_known=''
        [ ! -f "$node/port" ] || is_known=yes
        "$0" init "$node" "${ports[number - 1]}" "$definitions"
        [ -z "$is_known" ] || continue
        echo $((port + 2)) > "$node/epmd"
        install -m 400 "$dir/cookie" "$node/home/.erlang.cookie"
        [ ${#namespaces[@]} = 0 ] || {
            echo "${namespaces[number - 1]}" > "$node/namespace"
            sed -i "s/^listeners\.tcp\.1 = 127\.0\.0\.1:/listeners.tcp.1 = /" "$node/rabbitmq.conf"
        }
        cat >> "$node/rabbitmq.conf" <<CONF
cluster_partition_handling = pause_minority
cluster_formation.peer_discovery_backend = classic_config
cluster_formation.target_cluster_size_hint = 3
cluster_formation.classic_config.nodes.1 = mss${ports[0]}@${namespaces[0]:-localhost}
cluster_formation.classic_config.nodes.2 = mss${ports[1]}@${namespaces[1]:-localhost}
cluster_formation.classic_config.nodes.3 = mss${ports[2]}@${namespaces[2]:-localhost}
CONF
    done
    ;;
tls)
    tls=$(realpath "${3:?TLS is missing}") address=127.0.0.1:
    [ ! -f "$dir/namespace" ] || address=''
    sed -i '/^listeners\./d; /^ssl_options\./d' "$dir/rabbitmq.conf"
    cat >> "$dir/rabbitmq.conf" <<CONF
listeners.tcp = none
listeners.ssl.1 = $address$(cat "$dir/port")
ssl_options.cacertfile = $tls/ca.pem
ssl_options.certfile = $tls/rabbitmq.pem
ssl_options.keyfile = $tls/rabbitmq.key
ssl_options.versions.1 = tlsv1.3
ssl_options.versions.2 = tlsv1.2
ssl_options.verify = verify_none
ssl_options.fail_if_no_peer_cert = false
CONF
    ;;
run)
    environment
    cd "$dir"
    # This makes the script become the node instead of standing in front of it: signals then reach the right process.
    RUNNING_UNDER_SYSTEMD=yes exec "$(server)/rabbitmq-server"
    ;;
ready)
    # The broker answers a wrong protocol header with its own.
    port=$(cat "$dir/port")
    if grep -q '^listeners.ssl' "$dir/rabbitmq.conf"; then
        # It listens last; a client certificate, should it ask for one, is not needed to see that.
        timeout 5 openssl s_client -brief -connect "127.0.0.1:$port" < /dev/null 2>&1 |
            grep -q 'CONNECTION ESTABLISHED'
        exit
    fi
    exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
    printf 'AMQP\x00\x00\x00\x00' >&3
    read -r -t 2 -N 4 answer <&3
    [ "$answer" = AMQP ]
    ;;
ctl)
    environment
    exec "$(server)/rabbitmqctl" -q -n "$RABBITMQ_NODENAME" "${@:3}"
    ;;
*) echo "unknown verb $verb; see the header" >&2; exit 64 ;;
esac
