#!/usr/bin/env bash
# The Dockerfile's steps without an engine, on Debian 12 as root: its sources are built by its steps, its packages are
# put into a new root file system, and every program of the image starts there as the image's user, without
# capabilities and with nothing it can write to. Some ten minutes; it needs mmdebstrap.
#   check-image.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
dockerfile=deploy/Dockerfile
deploy/scripts/packages.sh mmdebstrap
work=$(mktemp -d)
trap 'umount -q "$work/mounted/proc" "$work/mounted" 2> /dev/null || true; rm -rf --one-file-system "$work"' EXIT

# The build stage: nothing but the copied files.
source=$PWD/.build-image/source
rm -rf "$source"
mkdir -p "$source" "$work/out" "$work/mounted"
read -ra copied <<< "$(sed -n '/ AS build/,/^FROM .BASE_IMAGE/s/^COPY \([^ ]*\) .*/\1/p' "$dockerfile" | tr '\n' ' ')"
git archive HEAD "${copied[@]}" | tar -x -C "$source"
read -ra build <<< "$(sed -n 's/^RUN swift \(build [^\\]*\)\\$/\1/p' "$dockerfile")"
read -ra programs <<< "$(sed -n '/&& mkdir \/out/,/\/out\/$/p' "$dockerfile" | grep -o 'release/mss[a-z-]*' |
    sed 's/.*\///' | tr '\n' ' ')"
[ "${#programs[@]}" -gt 0 ] || { echo "check-image: the Dockerfile copies no program" >&2; exit 70; }
swift "${build[@]}" --package-path "$source" --scratch-path "$PWD/.build-image"
for program in "${programs[@]}"; do cp ".build-image/release/$program" "$work/out/"; done
(cd "$source" && swift package --scratch-path "$OLDPWD/.build-image" show-dependencies --format json) |
    python3 deploy/scripts/sbom.py 0.1.0 > "$work/out/sbom.cdx.json"

# The image's own stage.
packages=$(sed -n '/^FROM .BASE_IMAGE/,$s/^RUN .*--no-install-recommends \(.*\) \\$/\1/p' "$dockerfile" | tr ' ' ',')
find /etc/apt -maxdepth 2 \( -name '*.list' -o -name '*.sources' \) -exec cat {} + |
    mmdebstrap --quiet --variant=minbase --include="$packages" bookworm "$work/files" - > "$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 69; }
install -m 755 "$work"/out/mss* "$work/files/usr/local/bin/"
install -D -m 644 -t "$work/files/usr/local/share/doc/mobile-sync-service" "$work/out/sbom.cdx.json"
user=$(sed -n 's/^USER \([0-9]*\):.*/\1/p' "$dockerfile")

mount --bind "$work/files" "$work/mounted"
mount -o remount,ro,bind "$work/mounted"
# Programs find their arguments there.
mount --bind /proc "$work/mounted/proc"
for program in "${programs[@]}"; do
    version=$(chroot "$work/mounted" setpriv --reuid="$user" --regid="$user" --clear-groups --bounding-set=-all \
        --inh-caps=-all --no-new-privs "/usr/local/bin/$program" --version)
    echo "$version, $(du -h "$work/out/$program" | cut -f 1)"
done
parts=$(grep -c '"bom-ref"' "$work/out/sbom.cdx.json")
echo "the image's files: $(du -sh "$work/files" | cut -f 1), user $user, $parts parts"
