#!/usr/bin/env bash
# How long the validator takes for an honest tenant: alone, beside sound ones, beside slow, huge, lying and broken ones.
#   bad-tenants.sh      on servers of its own; builds the programs that it needs
set -euo pipefail
cd "$(dirname "$0")/../.."
export MSS_TEST_BENCH=1
swift build --build-tests --explicit-target-dependency-import-check error
swift test --skip-build --filter BadTenantTests/times | grep -E "^BENCH|✘|error" | sed 's/^BENCH //'
