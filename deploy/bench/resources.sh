#!/usr/bin/env bash
# How soon a cached resource that changed is fresh on an online device, and the cost when 10 of 1,000 changed.
#   resources.sh [ROUNDS]     200 pushes by default; about a minute, on a stack of its own that is gone afterwards
# The device is one of the tests' (debug build), and fails beyond 1 s and beyond twice the bytes of the ten.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
swift build --build-tests > "$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 69; }
MSS_BENCH_RESOURCES=$work/figures MSS_BENCH_ROUNDS=${1:-200} .build/debug/mobile-sync-servicePackageTests.xctest \
    --testing-library swift-testing --filter ResourceBenchTests > "$work/run.log" 2>&1 ||
    { tail -n 40 "$work/run.log" >&2; exit 1; }
cat "$work/figures"
