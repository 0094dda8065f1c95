#!/usr/bin/env bash
# Checks deploy/release: the files of a release are complete, the same in two runs, verified by the commands of the
# guide, and the packages and the archive can be used.
#   check-release.sh [BINARIES]   in seconds: programs of a few lines stand in for those of a release. BINARIES has the
#                                 real ones, .build/debug when not said, for their libraries and their settings
#   check-release.sh full         builds a release twice, installs its packages and starts a stack from its archive on a
#                                 new Debian 12 without Swift, and loads its image. As root on Debian 12; half an hour
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=quick binaries=.build/debug
case ${1:-} in
full) mode=full ;;
?*) binaries=$1 ;;
esac
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
fail() { echo "check-release: $1" >&2; exit 1; }
say() { echo "check-release: $1"; }

block() { # PAGE HEADING NUMBER: a block of commands of a page
    awk -v heading="$2" -v wanted="$3" '
        /^#+ / { here = $0 ~ "^#+ " heading "$" }
        here && /^ *```sh/ { number++; inside = number == wanted; next }
        /^ *```/ { inside = 0 }
        inside' "deploy/manual/$1" > "$work/block"
    [ -s "$work/block" ] || fail "$1 has no block $3 under $2"
}

ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/key"
release() { # FOLDER OPTION…
    deploy/release "$@" --key "$work/key" --signer check@localhost > "$work/log" || { cat "$work/log" >&2; exit 1; }
}
same() { # FOLDER FOLDER
    diff -r "$1" "$2" || fail "two runs made different files"
}

verify() { # FOLDER: with the guide's commands
    block Releases.md 'Verify a release' 1
    (cd "$1" && bash -eu "$work/block") > "$work/log" 2>&1
}
check_signature() { # FOLDER
    verify "$1" || { cat "$work/log" >&2; fail "the files are not verified"; }
    for file in NOTES.md SHA256SUMS SHA256SUMS.sig; do
        cp -r "$1" "$work/changed"
        echo >> "$work/changed/$file"
        # The last line of a signature is no part of it.
        [ "$file" != SHA256SUMS.sig ] || sed -i '2s/./B/3' "$work/changed/$file"
        ! verify "$work/changed" || fail "a change of $file is not noticed"
        rm -r "$work/changed"
    done
    cp -r "$1" "$work/changed"
    rm "$work/changed/SHA256SUMS.sig"
    ! verify "$work/changed" || fail "a missing signature is not noticed"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/other"
    ssh-keygen -q -Y sign -f "$work/other" -n mobile-sync-service "$work/changed/SHA256SUMS" 2> "$work/log" ||
        fail "the other signature: $(cat "$work/log")"
    ! verify "$work/changed" || fail "the signature of another key is not noticed"
    rm -r "$work/changed"
}

version=$(sed -n 's/.*package static let version = "\(.*\)"/\1/p' Shared/Server/ServiceKit/Process/ServiceMain.swift)
if [ "$mode" = quick ]; then
    # One version everywhere.
    for line in 'deploy/chart/Chart.yaml:^version: ' 'deploy/chart/Chart.yaml:^appVersion: ' \
        'deploy/Dockerfile:^ARG VERSION=' 'docker-compose.yml:^  image: mobile-sync-service:' \
        'deploy/Changelog.md:^## ' 'deploy/Changelog.zh.md:^## '; do
        found=$(sed -n "s/${line#*:}//p" "${line%%:*}" | head -n 1)
        [ "$found" = "$version" ] || fail "${line%%:*} has the version $found, not $version"
    done

    mkdir "$work/programs" "$work/status"
    printf '%s\n' '#include <stdio.h>' "int main(void) { puts(\"mssctl $version\"); }" > "$work/program.c"
    clang -o "$work/programs/mssctl" "$work/program.c"
    for name in ingest oplog-writer gateway session-validator statistics console notifier relay; do
        cp "$work/programs/mssctl" "$work/programs/mss-$name"
    done
    # Of the image's files, a release reads the list of packages.
    mkdir -p "$work/files/var/lib/dpkg"
    printf 'Package: librabbitmq4\nVersion: 0.11.0-1+deb12u3\n\n' > "$work/files/var/lib/dpkg/status"
    tar -cf "$work/files.tar" -C "$work/files" .
    release "$work/first" --programs "$work/programs" --image "$work/files.tar"
    release "$work/second" --programs "$work/programs" --image "$work/files.tar"
    same "$work/first" "$work/second"
    check_signature "$work/first"
    printf 'Package: librabbitmq4\nVersion: 0.11.0-1+deb12u2\n\n' > "$work/files/var/lib/dpkg/status"
    tar -cf "$work/files.tar" -C "$work/files" .
    ! deploy/release "$work/old" --programs "$work/programs" --image "$work/files.tar" > "$work/log" 2>&1 ||
        fail "an image with an old librabbitmq4 is not refused"
    printf 'Package: librabbitmq4\nVersion: 0.11.0-1+deb12u3\n\n' > "$work/files/var/lib/dpkg/status"
    mkdir -p "$work/files/etc/apt"
    : > "$work/files/etc/apt/sources.list"
    tar -cf "$work/files.tar" -C "$work/files" .
    ! deploy/release "$work/mirror" --programs "$work/programs" --image "$work/files.tar" > "$work/log" 2>&1 ||
        fail "an image that names the mirror is not refused"

    # The packages: the unit, the settings, the libraries.
    for package in mobile-sync-service mobile-sync-service-tool; do
        ! dpkg-deb -c "$work/first/${package}_$version-1_$(dpkg --print-architecture).deb" | grep -E '^.{5}w|^.{8}w' ||
            fail "others than root can write these files of $package"
        dpkg-deb -x "$work/first/${package}_$version-1_$(dpkg --print-architecture).deb" "$work/installed"
    done
    (cd "$work/installed" && ls usr/bin) | sort > "$work/installed.names"
    find "$work/programs" -type f -printf '%f\n' | sort | diff - "$work/installed.names" || fail "a program is missing"
    unit=$work/installed/usr/lib/systemd/system/mss@.service
    while read -r program; do
        [ -x "$work/installed${program/\%i/ingest}" ] || fail "the unit starts $program, which is not installed"
    done < <(sed -nE 's/^Exec(StartPre|Start)=([^ ]*).*/\2/p' "$unit")
    "$binaries/mssctl" secrets "$work/secrets" > "$work/log"
    deploy/scripts/certificates.sh "$work/secrets"
    for file in "$work"/installed/usr/share/mobile-sync-service/examples/*.json; do
        name=$(basename "$file" .json)
        # The notifier's apps are the operator's; the tool has no check of its settings.
        case $name in notifier | mssctl) continue ;; esac
        sed "s|/etc/mobile-sync-service/secrets|$work/secrets|" "$file" > "$work/settings.json"
        env -i MSS_CONFIG_FILE="$work/settings.json" "$binaries/mss-$name" config check > "$work/log" 2>&1 ||
            fail "the example $name.json: $(cat "$work/log")"
    done
    depends=$(dpkg-deb -f "$work"/first/mobile-sync-service_*.deb Depends)
    for library in $(find "$binaries" -maxdepth 1 -name 'mss*' -type f -perm -u+x -exec ldd {} + |
        awk '$3 ~ /^\// && $3 !~ /\/swift\/linux\// { print $3 }' | sort -u); do
        package=$(dpkg -S "$(realpath "$library")" "$library" 2> /dev/null | cut -d: -f1 | sort -u | head -n 1)
        grep -qE "(^|[ |])$package([ ,]|$)" <<< "$depends" || fail "the packages do not depend on $package ($library)"
    done

    # The image: the Dockerfile's user, command and labels, and layers with the digests that it names.
    python3 - "$work"/first/*-image-*.tar.gz <<'PYTHON' || fail "the image: see above"
import hashlib, json, sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    manifest = json.load(archive.extractfile("manifest.json"))[0]
    text = archive.extractfile(manifest["Config"]).read()
    assert manifest["Config"] == hashlib.sha256(text).hexdigest() + ".json"
    image = json.loads(text)
    layers = [archive.extractfile(layer).read() for layer in manifest["Layers"]]
    assert image["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]
    assert image["config"]["User"] == "10001:10001" and image["config"]["Cmd"] == ["mssctl", "--help"]
    assert image["config"]["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    layer = tarfile.open(fileobj=archive.extractfile(manifest["Layers"][1]))
    modes = {entry.name: entry.mode for entry in layer if entry.isfile()}
    assert modes["./usr/local/bin/mss-ingest"] == 0o755 and len(modes) == 10
PYTHON
    python3 - "$work/first" <<'PYTHON' || fail "the statements on vulnerabilities: see above"
import json, pathlib, sys
statements = json.loads(pathlib.Path(sys.argv[1], "vex.openvex.json").read_text())["statements"]
for one in statements:
    assert one["status"] in ("fixed", "not_affected"), one
    assert ("justification" in one) == (one["status"] == "not_affected"), one
assert len({one["vulnerability"]["name"] for one in statements}) == 5
PYTHON
    say "two runs made the same files; signature, packages, settings, libraries, image and VEX are good"
    exit
fi

# ---- A real release --------------------------------------------------------------------------------------------------

[ "$(id -u)" = 0 ] || fail "a new machine needs root"
deploy/scripts/packages.sh mmdebstrap docker.io
release "$work/first"
rm -rf .build-release/*-linux-gnu .build-release/build.db
release "$work/second" --versions "$work/first/Package.resolved" --image .build-release/image.tar
same "$work/first" "$work/second"
check_signature "$work/first"
say "two builds made the same files: $(du -sh "$work/first" | cut -f 1)"
deploy/scripts/try-release.sh "$work/first"
