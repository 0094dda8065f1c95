#!/usr/bin/env bash
# Installs the Debian packages that the build and the local servers need; does nothing when they are there. No package
# starts its service now. Debian enables the services of postgresql, rabbitmq-server and docker.io, so a machine with
# systemd starts them at its next boot, unless an administrator disables them.
#   packages.sh [--run] [PACKAGE…]     and these; --run: without those of the build
set -euo pipefail
libraries=(librabbitmq-dev libpq-dev libssl-dev libsqlite3-dev)
if [ "${1:-}" = --run ]; then
    libraries=(librabbitmq4 libpq5 libsqlite3-0)
    shift
fi
packages=("${libraries[@]}" postgresql rabbitmq-server openssl python3 curl procps util-linux "$@")
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
# Older ones have known holes (CVE-2023-35789 and those of 2026); another distribution numbers its own repairs.
check_versions() {
    local version
    version=$(dpkg-query -W -f '${Version}' librabbitmq4 2>/dev/null) || return 0
    # shellcheck source=/dev/null
    [ "$(. /etc/os-release && echo "$ID${VERSION_ID:-}")" = debian12 ] || return 0
    dpkg --compare-versions "$version" ge 0.11.0-1+deb12u3 || {
        echo "librabbitmq4 $version has known holes: sudo apt-get install librabbitmq4, 0.11.0-1+deb12u3 or newer" >&2
        exit 69
    }
}
[ ${#missing[@]} -gt 0 ] || { check_versions; exit 0; }
if [ "$(id -u)" != 0 ]; then
    echo "missing packages; install them with: sudo apt-get install ${missing[*]}" >&2
    exit 69
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# The servers and the engine are started by scripts, each with a folder of its own. An answer of 101 keeps packages from
# starting theirs; an administrator's own policy stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
install() { apt-get install -y --no-install-recommends "${missing[@]}" > "$log" 2>&1; }
install || { apt-get update > "$log" 2>&1 && install; } || { cat "$log" >&2; exit 69; }
rm -f "$log"
check_versions
