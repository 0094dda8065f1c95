#!/usr/bin/env bash
# PostgreSQL's machine is lost for good, and the database is put back from last night's backup into a new cluster, while
# a backend pushes to devices that have more than the backup: each later answered push reaches its device, once and in
# order, and no id has two contents; pushes that the backup lacks are counted apart. Release build, root, a stack of
# its own that is gone afterwards.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=deploy/faults/servers.sh
source deploy/faults/servers.sh

start_stack --scale ingest=2 --scale writer=2 --scale gateway=2
start_devices restore
start_pushing --prefix restore --users "$users"
await_pushes 1000
as_owner pg_dumpall -p "$MSS_STACK_POSTGRES_PORT" --roles-only --file "$folder/roles.sql"
as_owner pg_dump -p "$MSS_STACK_POSTGRES_PORT" --format=custom --file "$folder/mss.dump" mss
await_pushes 1000
kill_server postgres "$primary"
lost=$(now)
rm -rf "$primary"

"$scripts/postgres.sh" init "$primary" "$MSS_STACK_POSTGRES_PORT" "$stack/secrets/postgres_owner"
"$scripts/postgres.sh" tls "$primary" "$stack/tls"
start_server postgres "$primary" "$MSS_STACK_POSTGRES_PORT"
"$scripts/postgres.sh" create-database "$primary" mss
# The owner is there already, which is said.
as_owner psql -X -q -p "$MSS_STACK_POSTGRES_PORT" postgres -f "$folder/roles.sql" > /dev/null 2> "$folder/roles.log"
as_owner pg_restore -p "$MSS_STACK_POSTGRES_PORT" --single-transaction --exit-on-error --dbname mss "$folder/mss.dump"
# A dump does not have the settings of its database: processes refuse it until this.
MSS_CONFIG_FILE="$stack/mssctl.json" ".build/$MSS_STACK_CONFIGURATION/mssctl" migrate --logins "$stack/secrets" \
    > "$folder/migrate.log" || complain "mssctl migrate failed after the restore"
await_pushes 2000
echo "$lost" | python3 "$faults/pushes.py" pauses "$notes"
stop_pushing
check_pushes --devices "$devices" --failover "$lost"
