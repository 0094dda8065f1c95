"""How long the disk keeps a commit waiting: fdatasync of 8 KiB, so many times a second, with nothing else going on.

    disk.py FOLDER [RATE [SECONDS]]     500 a second for 20 s
"""

import os
import statistics
import sys
import tempfile
import time

BLOCK, BLOCKS = 8192, 2000


def measure(file, rate, seconds):
    os.pwrite(file, bytes(BLOCK * BLOCKS), 0)
    os.fsync(file)
    waits, due = [], time.monotonic()
    for number in range(rate * seconds):
        due += 1 / rate
        time.sleep(max(0, due - time.monotonic()))
        os.pwrite(file, os.urandom(BLOCK), number % BLOCKS * BLOCK)
        begin = time.perf_counter()
        os.fdatasync(file)
        waits.append((time.perf_counter() - begin) * 1000)
    return waits


folder, rate, seconds = (sys.argv[1:] + ["500", "20"][len(sys.argv) - 2:])[:3]
rate, seconds = int(rate), int(seconds)
with tempfile.TemporaryFile(dir=folder) as opened:
    waits = measure(opened.fileno(), rate, seconds)
p50, p99 = (statistics.quantiles(waits, n=100)[n - 1] for n in (50, 99))
stalls = [wait for wait in waits if wait > 5]
print(f"fdatasync of 8 KiB, {rate}/s: p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {max(waits):.0f} ms; "
      f"{len(stalls)} above 5 ms in {seconds} s, {sum(stalls) / seconds / 10:.1f} % of the time")
