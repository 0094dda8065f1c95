#!/usr/bin/env bash
# Prints the first of so many ports in a row that nothing uses now: for servers of a test or a benchmark.
#   free-ports.sh COUNT
set -euo pipefail
exec python3 - "${1:?how many}" <<'PYTHON'
import random, socket, sys
def free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
while True:
    first = random.randrange(20000, 30000)
    if all(free(first + offset) for offset in range(int(sys.argv[1]))):
        print(first)
        break
PYTHON
