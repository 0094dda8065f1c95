#!/usr/bin/env bash
# Installs the Debian packages that the build and the local servers need; does nothing when they are there.
set -euo pipefail
packages=(librabbitmq-dev libpq-dev libssl-dev libsqlite3-dev postgresql rabbitmq-server openssl python3 curl procps
    util-linux "$@")
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ]; then
    echo "missing packages; install them with: sudo apt-get install ${missing[*]}" >&2
    exit 69
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
install() { apt-get install -y --no-install-recommends "${missing[@]}" > "$log" 2>&1; }
install || { apt-get update > "$log" 2>&1 && install; } || { cat "$log" >&2; exit 69; }
rm -f "$log"
