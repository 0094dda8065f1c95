#!/usr/bin/env bash
# A wrong wall clock and a slow disk for processes that run: machine_faults.c, and the file with its settings.
#   machine-faults.sh build LIBRARY                  compile it: LD_PRELOAD=LIBRARY MACHINE_FAULTS=FILE COMMAND…
#   machine-faults.sh set FILE CLOCK_MS [SYNC_MS]    the clock is so far ahead (-3600000: an hour behind), and a flush
#                                                    takes so much longer, from now on; also makes the file
set -euo pipefail
case ${1:?see the header} in
build)
    cc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "${2:?LIBRARY is missing}" \
        "$(dirname "$0")/machine_faults.c" -ldl -pthread
    chmod a+rx "$2"
    ;;
set)
    # In place and at once: processes have the file in their memory.
    python3 - "${2:?FILE is missing}" "${3:?CLOCK_MS is missing}" "${4:-0}" <<'PYTHON'
import os, struct, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.pwrite(file, struct.pack("=qq", *map(int, sys.argv[2:])), 0)
PYTHON
    ;;
*) echo "unknown verb $1; see the header" >&2; exit 64 ;;
esac
