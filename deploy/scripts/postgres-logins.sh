#!/usr/bin/env bash
# Makes the logins of the tiers that open the database, after `mssctl migrate` has made the roles with their rights, or
# gives them new passwords. Connects as libpq's variables say (PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE).
#   postgres-logins.sh [FOLDER]   FOLDER has the passwords, postgres_writer, postgres_statistics and
#                                 postgres_console; without: none
set -euo pipefail
for tier in writer statistics console; do
    [ -z "${1:-}" ] || [ -s "$1/postgres_$tier" ] || {
        echo "postgres-logins.sh: $1/postgres_$tier is missing or empty: it must have the password of $tier" >&2
        exit 66
    }
done
for tier in writer statistics console; do
    psql -qX -v ON_ERROR_STOP=1 -v tier="$tier" -v role="mss_$tier" <<'SQL'
SELECT format('CREATE ROLE %I LOGIN IN ROLE %I', :'tier', :'role') WHERE to_regrole(:'tier') IS NULL
\gexec
SELECT pg_has_role(:'tier', :'role', 'MEMBER') AS ours
\gset
\if :ours
\else
    DO $$ BEGIN
        RAISE 'the server has a role of that name which is not ours: give this service a server of its own';
    END $$;
\endif
SQL
    [ -n "${1:-}" ] || continue
    # The password travels on standard input: arguments can be seen by everybody.
    psql -qX -v ON_ERROR_STOP=1 -v tier="$tier" <<SQL
\set password \`cat '$1/postgres_$tier'\`
ALTER ROLE :"tier" PASSWORD :'password';
SQL
done
