#!/usr/bin/env bash
# Uses the files of a release as deploy/manual/Releases.md and Install.md say, on a new Debian 12 with nothing else: the
# archive starts a stack and delivers a first push, the packages run every process, and a container engine loads the
# image. As root on Debian 12; some minutes, most of them for the packages of Debian. No init runs on the machine: a
# stand-in for systemctl starts the commands of the units, as the units' users.
#   try-release.sh FOLDER [SECONDS]    fails when the archive's first push takes longer: 60, with Debian's packages
set -euo pipefail
cd "$(dirname "$0")/../.."
release=$(realpath "${1:?FOLDER is missing}") limit=${2:-60}
# shellcheck source=deploy/scripts/engine.sh
source deploy/scripts/engine.sh
fail() { echo "try-release: FAILED: $1" >&2; exit 1; }
say() { echo "try-release: $1"; }
now() { date +%s%N; }
since() { awk -v began="$1" -v now="$(now)" 'BEGIN { printf "%.1f", (now - began) / 1e9 }'; }

case ${MSS_TRY_PART:-} in
'')
    [ "$(id -u)" = 0 ] || fail "it needs root"
    deploy/scripts/packages.sh docker.io iptables iproute2 mmdebstrap
    # The machine has this one's network, for the packages of Debian. The engine has a network of its own.
    MSS_CHECK_FOLDER=$(mktemp -d)
    export MSS_CHECK_FOLDER
    trap 'rm -rf --one-file-system "$MSS_CHECK_FOLDER"' EXIT
    MSS_TRY_PART=machine unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
        deploy/scripts/try-release.sh "$@"
    MSS_TRY_PART=image enter_namespaces deploy/scripts/try-release.sh "$@"
    ;;
image)
    start_engine "$MSS_CHECK_FOLDER"
    docker load --quiet < "$(echo "$release"/*-image-*.tar.gz)" > "$MSS_CHECK_FOLDER/loaded"
    image=$(sed -n 's/^Loaded image: //p' "$MSS_CHECK_FOLDER/loaded")
    inside=$(docker run --rm --network none --read-only --cap-drop ALL "$image" sh -c 'id -u && mssctl --version')
    [ "$(head -n 1 <<< "$inside")" = 10001 ] || fail "the image's user is $inside"
    say "the image is loaded, $(docker image inspect --format '{{.Size}}' "$image") bytes: $(tail -n 1 <<< "$inside")"
    exit
    ;;
esac

root=$MSS_CHECK_FOLDER/machine
deploy/stand-ins/roots.sh machine "$root"
for path in /proc /dev /sys; do mount --rbind "$path" "$root$path"; done
cp -r "$release" "$root/root/release"
inside() { chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }

# ---- The archive -----------------------------------------------------------------------------------------------------

# The ports of a stack, which nothing on this machine uses.
first=$(deploy/scripts/free-ports.sh 41)
ports=(MSS_STACK_API_PORT="$first" MSS_STACK_DEVICE_PORT=$((first + 4)) MSS_STACK_CONSOLE_PORT=$((first + 8))
    MSS_STACK_POSTGRES_PORT=$((first + 9)) MSS_STACK_RABBITMQ_PORT=$((first + 10))
    MSS_STACK_TENANT_PORT=$((first + 13)) MSS_STACK_HEALTH_PORT=$((first + 14)))
archive=$(basename "$release"/*-linux-*.tar.gz)
# The checkout of a user: the commit's files.
mkdir "$root/root/checkout"
git archive HEAD | tar -x -C "$root/root/checkout"
started=$(now)
inside /root/checkout/deploy/scripts/packages.sh --run > "$MSS_CHECK_FOLDER/packages.log"
packages=$(since "$started")
inside "${ports[@]}" /root/checkout/deploy/up --detach --from "/root/release/$archive" > "$MSS_CHECK_FOLDER/up.log" ||
    { cat "$MSS_CHECK_FOLDER/up.log" >&2; fail "deploy/up --from"; }
up=$(since "$started")
inside /root/checkout/.local/release/bin/mssctl listen --instance demo_app --user u1 --device d1 --session s1 \
    --port $((first + 4)) --ca /root/checkout/.local/tls/ca.pem --store /root/d1.sqlite > "$MSS_CHECK_FOLDER/device" &
listener=$!
curl -sS "http://127.0.0.1:$first/webapi/sync/single?instanceId=demo_app" -H 'Content-Type: application/json' \
    -d '{"bizType":"UCHAT","linkToken":"u1","thirdMsgId":"m1","payload":"hello"}' > "$MSS_CHECK_FOLDER/answer"
for _ in $(seq 200); do
    ! grep -q 'UCHAT 1 hello' "$MSS_CHECK_FOLDER/device" || break
    sleep 0.05
done
took=$(since "$started")
grep -q 'UCHAT 1 hello' "$MSS_CHECK_FOLDER/device" || fail "no push arrived: $(cat "$MSS_CHECK_FOLDER/answer")"
say "Debian's packages after $packages s, the archive's stack ready after $up s, the first push delivered after $took s"
awk -v took="$took" -v limit="$limit" 'BEGIN { exit took > limit }' || fail "that is more than $limit s"
kill "$listener"
inside "${ports[@]}" /root/checkout/deploy/down --wipe > "$MSS_CHECK_FOLDER/down.log"

# ---- The packages ----------------------------------------------------------------------------------------------------

cat > "$root/usr/local/bin/systemctl" <<'STAND_IN'
#!/bin/bash
# A stand-in for systemd, which does not run here: it starts what the units name, as their users.
set -euo pipefail
case "$*" in
daemon-reload) ;;
"restart postgresql") pg_ctlcluster 15 main restart ;;
"restart rabbitmq-server")
    rabbitmqctl shutdown > /dev/null 2>&1 || true
    setsid --fork rabbitmq-server > /var/log/rabbitmq/stand-in.log 2>&1 < /dev/null
    ;;
"enable --now mss@"*)
    unit=/usr/lib/systemd/system/mss@.service
    for name in "${@:3}"; do
        name=${name#mss@}
        mapfile -t environment < <(sed -n "s/^Environment=//p" "$unit" | sed "s/%i/$name/")
        user=$(sed -n 's/^User=//p' "$unit")
        as_user=(setpriv --reuid="$user" --regid="$user" --init-groups --no-new-privs env -i "${environment[@]}")
        "${as_user[@]}" "/usr/bin/mss-$name" config check > "/var/log/mss-$name.log" 2>&1 || {
            cat "/var/log/mss-$name.log" >&2
            exit 1
        }
        setsid --fork "${as_user[@]}" "/usr/bin/mss-$name" > "/var/log/mss-$name.log" 2>&1 < /dev/null
    done
    ;;
*) echo "systemctl: this stand-in does not know: $*" >&2; exit 64 ;;
esac
STAND_IN
chmod 755 "$root/usr/local/bin/systemctl"
# Packages start nothing and ask nothing.
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
echo 'APT::Get::Assume-Yes "true";' > "$root/etc/apt/apt.conf.d/90-assume-yes"
# From the second block on the machine is alone, and has all ports.
unshare --net sh -c 'ip link set lo up && exec sleep infinity' &
alone=(nsenter --net="/proc/$!/ns/net")
guide() { # NUMBER [COMMAND…]: runs a block of commands of the guide
    awk -v wanted="$1" '
        /^## / { here = $0 == "## Debian packages" }
        here && /^ *```sh/ { number++; inside = number == wanted; next }
        /^ *```/ { inside = 0 }
        inside { sub(/^   /, ""); print }' deploy/manual/Install.md > "$root/root/block"
    [ -s "$root/root/block" ] || fail "Install.md has no block $1 under Debian packages"
    "${@:2}" chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        DEBIAN_FRONTEND=noninteractive bash -euc 'cd /root/release; source /root/block' \
        > "$MSS_CHECK_FOLDER/block.log" 2>&1 || {
        tail -n 30 "$MSS_CHECK_FOLDER/block.log" >&2
        fail "block $1 of Install.md: $(cat "$root/root/block")"
    }
}
guide 1
# An init would have started it.
"${alone[@]}" chroot "$root" pg_ctlcluster 15 main start
for number in 2 3 4 5; do guide "$number" "${alone[@]}"; done
for name in ingest oplog-writer gateway session-validator statistics console relay; do
    port=$(sed -n 's/.*"MSS_HEALTH_PORT": "\(.*\)".*/\1/p' "$root/etc/mobile-sync-service/$name.json")
    for _ in $(seq 300); do
        "${alone[@]}" curl -fsS "http://127.0.0.1:$port/readyz" > /dev/null 2>&1 && continue 2
        sleep 0.1
    done
    fail "mss@$name is not ready: $(tail -n 5 "$root/var/log/mss-$name.log")"
done
guide 6 "${alone[@]}"
grep '^problem' "$MSS_CHECK_FOLDER/block.log" >&2 && fail "the doctor finds a problem"
say "the packages' processes are ready, and the doctor's push arrived:
$(grep -i 'push' "$MSS_CHECK_FOLDER/block.log")"
