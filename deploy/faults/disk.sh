#!/usr/bin/env bash
# A disk that can lose its power, or be full: an ext4 file system in a loop file. Root; the mount is one of the caller's
# mount namespace.
#   disk.sh make FILE MEGABYTES    a new file with an empty file system
#   disk.sh mount FILE FOLDER      the folder is that disk; its journal is replayed
#   disk.sh cut FOLDER             the power goes: unflushed data never reaches the disk, nor does anything later
#   disk.sh unmount FOLDER         waits up to 10 s for the last process that is in it
#   disk.sh fill FOLDER            the file `ballast` takes all that is free
#   disk.sh free FOLDER            and gives it back
set -euo pipefail
verb=${1:?see the header}
case $verb in
make)
    truncate --size "${3:?MEGABYTES is missing}M" "${2:?FILE is missing}"
    # No space is reserved for root: a full disk is full for every user.
    mkfs.ext4 -q -F -m 0 "$2"
    ;;
mount)
    mkdir -p "${3:?FOLDER is missing}"
    mount -t ext4 -o loop "${2:?FILE is missing}" "$3"
    ;;
cut)
    # FS_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: not even the journal is flushed any more.
    python3 - "${2:?FOLDER is missing}" <<'PYTHON'
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))
PYTHON
    ;;
unmount)
    for _ in $(seq 100); do
        umount "${2:?FOLDER is missing}" 2> /dev/null && exit 0
        sleep 0.1
    done
    umount "$2"
    ;;
fill)
    # The most of it at once, then the rest.
    free=$(df --output=avail --block-size=1 "${2:?FOLDER is missing}" | tail -n 1)
    fallocate --length "$free" "$2/ballast" 2> /dev/null || true
    cat /dev/zero >> "$2/ballast" 2> /dev/null || true
    sync --file-system "$2"
    ;;
free)
    rm -f "${2:?FOLDER is missing}/ballast"
    sync --file-system "$2"
    ;;
*) echo "unknown verb $verb; see the header" >&2; exit 64 ;;
esac
