#!/usr/bin/env bash
# The time of the console's queries with many facts in the database, and the disk space of the figures.
#   figures.sh [FACTS]     on a PostgreSQL of its own; 1,000,000 by default. A hundred million take 20 GB and some time
set -euo pipefail
cd "$(dirname "$0")/../.."
facts=${1:-1000000}
swift build -c release --product mssctl
swift build --build-tests --explicit-target-dependency-import-check error
# shellcheck source=deploy/bench/private.sh
source deploy/bench/private.sh
start_postgres
as_owner psql -qX -v facts="$facts" -f deploy/bench/figures.sql
as_owner psql -qAtX -F ' ' <<'SQL'
SELECT relname, pg_size_pretty(pg_relation_size(oid)), 'indexes', pg_size_pretty(pg_indexes_size(oid))
FROM pg_class WHERE relname ~ '^statistics_' AND relkind = 'r' AND pg_total_relation_size(oid) > 1e6
ORDER BY pg_total_relation_size(oid) DESC;
SELECT 'all together', pg_size_pretty(pg_database_size(current_database()));
SQL
MSS_BENCH_POSTGRES_PORT=$postgres_port swift test --skip-build --filter FigureBench |
    grep -E "^BENCH|✘|error" | sed 's/^BENCH //'
