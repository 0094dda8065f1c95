#!/usr/bin/env bash
# Runs docker-compose.yml in a real container engine, as deploy/manual/Install.md says: the image is built by the
# Dockerfile, and the service starts, delivers, scales, survives killed processes, is upgraded and drains. As root on
# Debian 12. The engine has a network, mounts and processes of its own, which end with this script. About two minutes;
# a further one when Debian's files are not yet in .local/containers.
#   check-containers.sh [BINARIES [BEFORE]]   BINARIES has the programs, .build/debug when not said. BEFORE has those of
#                                             an earlier build, to be upgraded; when not said, the same programs
# Stand-ins, deploy/stand-ins: the images debian, swift, postgres and rabbitmq are made of Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/scripts/engine.sh
source deploy/scripts/engine.sh
binaries=$(realpath "${1:-.build/debug}") before=$(realpath "${2:-${1:-.build/debug}}")

# Within the namespaces this script is the first process.
if [ -z "${MSS_CHECK_FOLDER:-}" ] || [ $$ != 1 ]; then
    [ "$(id -u)" = 0 ] || { echo "check-containers: a container engine needs root" >&2; exit 69; }
    deploy/scripts/packages.sh docker.io iptables iproute2 mmdebstrap
    deploy/stand-ins/roots.sh containers .local/containers deploy/Dockerfile
    MSS_CHECK_FOLDER=$(mktemp -d)
    export MSS_CHECK_FOLDER
    # The list of the image's parts is of the build.
    swift package show-dependencies --format json > "$MSS_CHECK_FOLDER/dependencies.json"
    enter_namespaces "$0" "$@"
fi

folder=$MSS_CHECK_FOLDER
checkout=$folder/checkout
compose_log=$folder/compose.log
mkdir -p "$checkout" "$folder"/{bin,client/cli-plugins,devices}
: > "$compose_log"

say() { echo "check-containers: $1"; }
complain() { # TEXT: the check has failed
    echo "check-containers: FAILED: $1" >&2
    tail -n 30 "$compose_log" >&2
    docker compose ps --all >&2 || true
    docker compose logs --no-color --tail 15 >&2 || true
    exit 1
}
quietly() { "$@" >> "$compose_log" 2>&1; }
since() { # INSTANT: the time since then, in seconds
    python3 -c "import sys, time; print(f'{time.time() - float(sys.argv[1]):.1f} s')" "$1"
}
now() { date +%s.%N; }
trap 'echo "check-containers: FAILED: the command at line $LINENO" >&2' ERR

# ---- The engine and its images ---------------------------------------------------------------------------------------

# The guide's sudo does nothing for root.
printf '#!/bin/sh\nexec "$@"\n' > "$folder/bin/sudo"
chmod +x "$folder/bin/sudo"
ln -s "$PWD/.local/containers/docker-compose" "$folder/client/cli-plugins/docker-compose"
start_engine "$folder" || complain "no engine"
started=$(now)
for root in debian postgres rabbitmq; do
    quietly docker import ".local/containers/$root.tar" "mss-check/$root-root" || complain "no root of $root"
done
stand_in() { # NAME IMAGE
    quietly docker build --tag "$2" "$folder/stand-ins/$1" || complain "the stand-in for $2 was not built"
}
cp -r deploy/stand-ins "$folder/stand-ins"
libraries=$folder/stand-ins/debian/libraries
mkdir -p "$libraries"
find "$binaries" -maxdepth 1 -name 'mss*' -type f -perm -u+x -exec ldd {} + |
    awk '$3 ~ /\/swift\/linux\// { print $3 }' | sort -u |
    xargs --no-run-if-empty cp --parents --dereference -t "$libraries"
stand_in debian debian:bookworm-slim
stand_in postgres "$(sed -n 's/^ *image: \(postgres:.*\)/\1/p' docker-compose.yml)"
stand_in rabbitmq "$(sed -n 's/^ *image: \(rabbitmq:.*\)/\1/p' docker-compose.yml)"
use_programs() { # BINARIES: those that the next build of the image has
    local programs=$folder/stand-ins/swift/programs program
    rm -rf "$programs"
    mkdir "$programs"
    for program in "$1"/mss*; do
        if [ -f "$program" ] && [ -x "$program" ]; then
            # A third of a debug build's size.
            strip --strip-all --remove-section=.swift_ast -o "$programs/${program##*/}" "$program"
        fi
    done
    cp "$folder/dependencies.json" "$programs/"
    stand_in swift swift:6.3-bookworm
}
use_programs "$before"
say "engine $(docker version --format '{{.Server.Version}}') with stand-ins after $(since "$started")"

# ---- The guide's steps -----------------------------------------------------------------------------------------------

# The files of this work tree, without those that are not the repository's.
git ls-files -z --cached --others --exclude-standard | tar --null --create --files-from - | tar -x -C "$checkout"
cd "$checkout"
guide() { # HEADING NUMBER: runs a block of commands of Install.md
    awk -v heading="$1" -v wanted="$2" '
        /^#+ / { here = $0 ~ "^#+ " heading "$" }
        here && /^ *```sh/ { number++; inside = number == wanted; next }
        /^ *```/ { inside = 0 }
        inside' deploy/manual/Install.md > "$folder/block"
    [ -s "$folder/block" ] || complain "Install.md has no block $2 under $1"
    quietly bash -euxo pipefail "$folder/block" || complain "block $2 of Install.md, $1: $(cat "$folder/block")"
}
healthy() { # COUNT TEXT: waits until so many containers are healthy, and says how long that took since $started
    local count
    for _ in $(seq 600); do
        count=$(docker ps --quiet --filter health=healthy | wc -l)
        [ "$count" != "$1" ] || { say "$2: all $1 containers healthy after $(since "$started")"; return; }
        sleep 0.2
    done
    complain "$2: $count of $1 containers are healthy after two minutes"
}
id_of() { docker compose ps --quiet "$1"; }
started=$(now)
guide Containers 1
size=$(docker image inspect --format '{{.Size}}' mobile-sync-service:0.1.0)
say "image built and secrets made in $(since "$started"), $((size / 1000000)) MB with these programs"
started=$(now)
guide Containers 2
healthy 9 "first start"
docker compose logs --no-color --no-log-prefix postgres rabbitmq |
    sed -n 's/.*\(a stand-in for\)/check-containers: \1/p'
guide Containers 3
grep -q '^ok  *database' "$compose_log" || complain "the doctor has not examined the database"
say "the tool's container: the doctor finds no problem, a file is applied, an administrator is invited"

# ---- Restrictions, seen from inside ----------------------------------------------------------------------------------

# shellcheck disable=SC2016 # the container's shell expands them
inside='
    echo "user $(id -u):$(id -g)"
    sed -nE "s/^(CapEff|CapBnd|NoNewPrivs|Seccomp):\s*/\1 /p" /proc/1/status
    for file in /x /tmp/x /run/x /var/tmp/x /usr/local/bin/x; do (: > $file) 2> /dev/null && echo "wrote $file"; done
    echo limits $(cat /sys/fs/cgroup/{memory/memory.limit_in_bytes,pids/pids.max,memory.max,pids.max} 2> /dev/null)
    echo secrets $(ls /run/secrets)'
for service in ingest writer gateway validator relay statistics console; do
    memory=1
    [ "$service" != gateway ] || memory=4
    secrets=$(sed -n "/^  $service:/,/^  [a-z]*:$/s/^    secrets: \[\(.*\)\]/\1/p" docker-compose.yml |
        tr -d ' ' | tr , '\n' | sort | paste -sd ' ')
    expected="user 10001:10001
CapEff 0000000000000000
CapBnd 0000000000000000
NoNewPrivs 1
Seccomp 2
limits $((memory << 30)) 512
secrets $secrets"
    docker compose exec -T "$service" bash -c "$inside" > "$folder/inside" || true
    diff <(echo "$expected" | sort) <(sort "$folder/inside") >&2 || complain "$service is restricted in another way"
done
say "restrictions seen from inside 7 containers: user, capabilities, files, memory, processes, own secrets"

# ---- Delivery, while processes are killed and the service is upgraded ------------------------------------------------

listen() { # USER PORT
    "$binaries/mssctl" listen --json --instance demo_app --user "$1" --device "$1" --session s --ca "$ca" \
        --port "$2" --store "$folder/devices/$1.sqlite" > "$folder/devices/$1.jsonl" 2> "$folder/devices/$1.log" &
}
rows() {
    docker compose exec -T postgres psql -X -qAt -F $'\t' -U postgres mss -c "SELECT c.target, o.third_message_id,
        o.oplog_id FROM oplog o JOIN channel c USING (channel_id) WHERE c.biz_type = 'UCHAT'"
}
ca=$checkout/deploy/secrets/ca.pem
: > "$folder/notes"
for number in 0 1 2 3; do listen "p-$number" "$(docker compose port gateway 7443 | sed 's/.*://')"; done
python3 deploy/faults/pushes.py run "$folder/notes" --api "$(docker compose port ingest 7080 | sed 's/.*://')" \
    --ca "$ca" --prefix p --users 4 --workers 4 --rate 20 > "$folder/answers" &
backend=$!
pushed() { # COUNT: waits until so many more pushes are answered as stored
    local goal
    goal=$(($(wc -l < "$folder/notes") + $1))
    for _ in $(seq 600); do
        [ "$(wc -l < "$folder/notes")" -lt "$goal" ] || return 0
        sleep 0.1
    done
    complain "pushes over TLS are not answered: $(cat "$folder/answers")"
}
pushed 40
for _ in $(seq 100); do [ ! -s "$folder/devices/p-0.jsonl" ] || break; sleep 0.1; done
[ -s "$folder/devices/p-0.jsonl" ] || complain "a device got nothing: $(cat "$folder/devices/p-0.log")"
say "pushes over TLS reach devices: $(head -n 1 "$folder/devices/p-0.jsonl")"

started=$(now)
killed=(ingest writer gateway validator relay statistics console)
for service in "${killed[@]}"; do kill -KILL "$(docker inspect --format '{{.State.Pid}}' "$(id_of "$service")")"; done
for service in "${killed[@]}"; do
    for _ in $(seq 100); do
        [ "$(docker inspect --format '{{.RestartCount}}' "$(id_of "$service")")" = 0 ] || continue 2
        sleep 0.1
    done
    complain "the engine did not start $service again"
done
healthy 9 "seven processes killed with -9"
pushed 20

# The image is another one, also when its programs are the same.
export MSS_REVISION=upgrade
[ "$before" = "$binaries" ] || use_programs "$binaries"
old=$(docker image inspect --format '{{.Id}}' mobile-sync-service:0.1.0)
started=$(now)
guide Containers 5
healthy 9 "upgrade"
for service in "${killed[@]}"; do
    [ "$(docker inspect --format '{{.Image}}' "$(id_of "$service")")" != "$old" ] || complain "$service is old"
done
[ "$(docker inspect --format '{{.State.ExitCode}}' "$(docker compose ps --all --quiet migrate)")" = 0 ] ||
    complain "the migration failed"
pushed 40
kill -TERM "$backend"
wait "$backend" || complain "the backend: $(cat "$folder/answers")"
rows > "$folder/rows"
python3 deploy/faults/pushes.py check "$folder/notes" --devices "$folder/devices" < "$folder/rows" ||
    complain "a push was lost, doubled or out of order"

# ---- Scale, drain ----------------------------------------------------------------------------------------------------

started=$(now)
guide Containers 4
healthy 12 "three gateways and two writers"
ingest=$(docker compose port ingest 7080 | sed 's/.*://')
for number in 1 2 3; do
    listen "s-$number" "$(docker compose port --index "$number" gateway 7443 | sed 's/.*://')"
    for _ in $(seq 100); do
        answer=$(curl -sS --cacert "$ca" -H 'Content-Type: application/json' \
            -d "{\"bizType\":\"UCHAT\",\"linkToken\":\"s-$number\",\"thirdMsgId\":\"1\",\"payload\":\"hello\"}" \
            "https://127.0.0.1:$ingest/webapi/sync/single?instanceId=demo_app" 2>&1 || true)
        [ ! -s "$folder/devices/s-$number.jsonl" ] || continue 2
        sleep 0.1
    done
    complain "the device at gateway $number got nothing: $answer $(cat "$folder/devices/s-$number.log")"
done
say "each of the three gateways delivers"

started=$(now)
mapfile -t ours < <(docker ps --quiet --filter label=org.opencontainers.image.title="Mobile Sync Service")
quietly docker compose stop || complain "stop"
for one in "${ours[@]}"; do
    code=$(docker inspect --format '{{.State.ExitCode}}' "$one")
    [ "$code" = 0 ] || complain "$(docker inspect --format '{{.Name}}' "$one") ended with $code"
done
say "${#ours[@]} processes drained and ended with 0, everything stopped in $(since "$started")"
guide Containers 6
[ -z "$(docker ps --all --quiet)" ] || complain "containers are left"
say "passed"
