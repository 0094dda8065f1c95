# shellcheck shell=bash
# For the benchmarks: psql on the local stack's database, values only.
psql() {
    PGPASSWORD=$(cat .local/postgres/password) command psql -qAt -h 127.0.0.1 \
        -p "${MSS_STACK_POSTGRES_PORT:-7432}" -U mss mss "$@"
}
