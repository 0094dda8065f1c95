#!/usr/bin/env bash
# Debian's files for the images of check-containers.sh: no image registry is needed. mmdebstrap gets them from the
# mirror of this machine's own sources, Debian 12, in about a minute.
#   roots.sh FOLDER DOCKERFILE   makes those that are not there: debian.tar, with the packages that the Dockerfile's
#                                steps install; postgres.tar; rabbitmq.tar; and docker-compose, the client's plugin
set -euo pipefail
folder=$(realpath -m "${1:?FOLDER is missing}") dockerfile=$(realpath "${2:?DOCKERFILE is missing}")
# The suites that have the versions which Dockerfile and docker-compose.yml name.
base=bookworm postgres=trixie rabbitmq=forky
mkdir -p "$folder"
# shellcheck disable=SC2016 # apt-get expands them
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) main' 'Created-By: Packages' | sort -u |
    grep " $base" || true)
mirror=$(sed -n "s/^deb \(.*\) $base main$/\1/p" <<< "$sources")
[ -n "$mirror" ] || { echo "roots.sh: the sources of apt do not have $base" >&2; exit 69; }

root() { # FILE SUITE SOURCES OPTION…: makes the file unless it was made in the same way
    local file=$folder/$1 suite=$2 lines=$3 stamp
    shift 3
    stamp=$(cksum <<< "$suite $lines $*")
    [ "$(cat "$file.stamp" 2> /dev/null)" != "$stamp" ] || return 0
    # Without documents, and without PostgreSQL's compiler, which is a third of its files.
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Languages "none"' \
        --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt=path-exclude='/usr/share/doc/*' \
        --dpkgopt=path-exclude='/usr/share/locale/*' --dpkgopt=path-exclude='/usr/share/man/*' \
        --dpkgopt=path-exclude='*/libLLVM*' --dpkgopt=path-exclude='*/llvmjit*' \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$@" \
        "$suite" "$file.new.tar" - <<< "$lines" > "$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 69; }
    mv "$file.new.tar" "$file"
    echo "$stamp" > "$file.stamp"
}

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
