#!/usr/bin/env bash
# Debian's files for images and tests: no image registry is needed. mmdebstrap gets them from the mirror of this
# machine's own sources, Debian 12.
#   roots.sh containers FOLDER DOCKERFILE   for check-containers.sh, makes those that are not there, in about a minute:
#                                           debian.tar, with the packages that the Dockerfile's steps install;
#                                           postgres.tar; rabbitmq.tar; docker-compose, the client's plugin
#   roots.sh image FILE DOCKERFILE          a tar for the image of a release: the Dockerfile's base image with the
#                                           packages of its last stage; made anew each time
#   roots.sh servers FOLDER SUITE           FOLDER/SUITE with PostgreSQL and RabbitMQ of that suite of Debian, for
#                                           SERVERS_ROOT; unless it is there
#   roots.sh machine FOLDER                 a machine on which Debian 12 was installed, and nothing else
set -euo pipefail
verb=${1:?see the header}
folder=$(realpath -m "${2:?see the header}")
# The suites that have the versions which Dockerfile and docker-compose.yml name.
base=bookworm postgres=trixie rabbitmq=forky
# shellcheck disable=SC2016 # apt-get expands them
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) main' 'Created-By: Packages' | sort -u |
    grep " $base" || true)
mirror=$(sed -n "s/^deb \(.*\) $base main$/\1/p" <<< "$sources")
[ -n "$mirror" ] || { echo "roots.sh: the sources of apt do not have $base" >&2; exit 69; }

bootstrap() { # SUITE TARGET SOURCES OPTION…: files of that suite, in a tar or a folder
    local suite=$1 target=$2 lines=$3 log
    shift 3
    log=$(mktemp)
    # Without documents but licences, and without PostgreSQL's compiler, which is a third of its files.
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Languages "none"' \
        --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=path-exclude='/usr/share/doc/*' \
        --dpkgopt=path-include='/usr/share/doc/*/copyright' \
        --dpkgopt=path-exclude='/usr/share/locale/*' --dpkgopt=path-exclude='/usr/share/man/*' \
        --dpkgopt=path-exclude='*/libLLVM*' --dpkgopt=path-exclude='*/llvmjit*' \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$@" \
        "$suite" "$target" - <<< "$lines" > "$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 69; }
    rm -f "$log"
}
root() { # FILE SUITE SOURCES OPTION…: makes the file unless it was made in the same way
    local file=$folder/$1 stamp
    stamp=$(cksum <<< "${*:2}")
    [ "$(cat "$file.stamp" 2> /dev/null)" != "$stamp" ] || return 0
    bootstrap "$2" "$file.new.tar" "${@:3}"
    mv "$file.new.tar" "$file"
    echo "$stamp" > "$file.stamp"
}

case $verb in
containers) ;;
image)
    read -ra packages <<< "$(sed -n '/^FROM .BASE_IMAGE/,$s/^RUN .*--no-install-recommends \(.*\) \\$/\1/p' \
        "${3:?DOCKERFILE is missing}")"
    mkdir -p "$(dirname "$folder")"
    # A release says nothing of the machine that made it: not its mirror, its name, or its name servers.
    # shellcheck disable=SC2016 # mmdebstrap's shell expands them
    bootstrap "$base" "$folder" "$sources" --include="$(IFS=,; echo "${packages[*]}")" \
        --customize-hook='cd "$1/etc" && rm -rf apt/sources.list apt/sources.list.d/* hostname resolv.conf'
    exit
    ;;
servers)
    suite=${3:?SUITE is missing}
    [ ! -e "$folder/$suite" ] || exit 0
    mkdir -p "$folder"
    # An interrupted call has left it.
    rm -rf --one-file-system "$folder/$suite.new"
    # Both servers' scripts run inside, and files have the numbers of this machine's users.
    # shellcheck disable=SC2016 # mmdebstrap's shell expands them
    bootstrap "$suite" "$folder/$suite.new" "deb $mirror $suite main" \
        --include=postgresql,rabbitmq-server,openssl,procps --customize-hook="set -eu
            echo 127.0.0.1 localhost > \"\$1/etc/hosts\"
            chroot \"\$1\" groupmod --non-unique --gid $(id -g postgres) postgres
            chroot \"\$1\" usermod --non-unique --uid $(id -u postgres) postgres"
    mv "$folder/$suite.new" "$folder/$suite"
    exit
    ;;
machine)
    # An installer writes the names of the machine, too.
    bootstrap "$base" "$folder" "$sources" \
        --customize-hook="echo 127.0.0.1 localhost $(hostname) > \"\$1/etc/hosts\""
    exit
    ;;
*) echo "unknown verb $verb; see the header" >&2; exit 64 ;;
esac

mkdir -p "$folder"
dockerfile=$(realpath "${3:?DOCKERFILE is missing}")

# The packages of the Dockerfile's steps, in a repository in the root itself: the steps need no network.
read -ra packages <<< "$(sed -z 's/\\\n//g' "$dockerfile" |
    sed -nE 's/^RUN .*--no-install-recommends ([^&]*) &&.*/\1/p' | tr '\n' ' ')"
# shellcheck disable=SC2016 # mmdebstrap's shell expands them
repository='set -eu
    APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get --yes --no-install-recommends --download-only install '"${packages[*]}"'
    mkdir "$1/packages"
    mv "$1"/var/cache/apt/archives/*.deb "$1/packages/"
    cd "$1/packages"
    for file in *.deb; do
        dpkg-deb --field "$file"
        printf "Filename: ./%s\nSize: %s\nSHA256: %s\n\n" "$file" "$(stat -c %s "$file")" \
            "$(sha256sum "$file" | cut -d " " -f 1)"
    done > Packages
    rm -f "$1"/etc/apt/sources.list.d/*
    echo "deb [trusted=yes] file:/packages ./" > "$1/etc/apt/sources.list"'
# shellcheck disable=SC2016
plugin='set -eu
    cd '"$folder"'
    APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get download docker-compose
    dpkg-deb --fsys-tarfile docker-compose_*.deb |
        tar -xO ./usr/libexec/docker/cli-plugins/docker-compose > docker-compose
    chmod 755 docker-compose
    rm docker-compose_*.deb'
root debian.tar "$base" "$sources" --customize-hook="$repository"
root postgres.tar "$postgres" "deb $mirror $postgres main" --include=postgresql --customize-hook="$plugin"
root rabbitmq.tar "$rabbitmq" "deb $mirror $rabbitmq main" --include=rabbitmq-server
