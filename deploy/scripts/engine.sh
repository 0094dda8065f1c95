# shellcheck shell=bash
# A container engine (Docker from Debian) of a script's own, in namespaces of its own: network, mounts and processes end
# with the script. Sourced from the top folder, as root, by a script that calls `enter_namespaces` first.

enter_namespaces() { # SCRIPT ARGUMENT…: runs the script again as the first process of new namespaces
    # shellcheck disable=SC2016 # the trap expands them
    trap 'find /sys/fs/cgroup -depth -type d -path "*/mss-check-$$*" -exec rmdir {} + || true
        rm -rf --one-file-system "$MSS_CHECK_FOLDER"' EXIT
    MSS_CHECK_CGROUP=mss-check-$$ unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
        "$@"
    exit
}

start_engine() { # FOLDER: the engine's data; afterwards `docker` uses it
    ip link set lo up
    mount -t tmpfs run /run
    # The client is Debian's, whatever else the PATH has.
    mkdir -p "$1/bin" "$1/client"
    ln -s /usr/bin/docker "$1/bin/docker"
    export PATH=$1/bin:$PATH DOCKER_HOST=unix://$1/engine.sock DOCKER_CONFIG=$1/client DOCKER_BUILDKIT=1
    dockerd --data-root "$1/engine" --exec-root "$1/exec" --host "$DOCKER_HOST" --pidfile "$1/engine.pid" \
        --cgroup-parent "/$MSS_CHECK_CGROUP" > "$1/engine.log" 2>&1 &
    for _ in $(seq 100); do
        docker version > /dev/null 2>&1 && return
        sleep 0.1
    done
    echo "the container engine did not start: $(tail -n 5 "$1/engine.log")" >&2
    return 69
}
