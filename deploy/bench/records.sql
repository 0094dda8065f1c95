-- Inserts audit records of one year. Variable: `records`, their number. The chain of their hashes cannot be verified.
\set ON_ERROR_STOP on
SET synchronous_commit = off;
SET maintenance_work_mem = '1GB';
CREATE TABLE bench_record_index AS
    SELECT indexdef FROM pg_indexes WHERE tablename = 'operation_record' AND indexname <> 'operation_record_pkey';
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT indexname FROM pg_indexes
        WHERE tablename = 'operation_record' AND indexname <> 'operation_record_pkey'
    LOOP EXECUTE format('DROP INDEX %I', name); END LOOP;
END $$;
INSERT INTO operation_record (
    number, recorded_at, actor, source, action, instance_id, subject, before, after, previous_hash, hash)
SELECT h.number + n, greatest(now(), h.recorded_at) - interval '365 days' * (1 - n / :records::float8),
    'console:' || CASE n % 7 WHEN 0 THEN 'ann' ELSE 'operator-' || n % 40 END, '192.0.2.' || n % 200, k.action,
    CASE WHEN n % 3 = 0 THEN 'other' ELSE k.instance_id END, k.subject, k.before, k.after, '\x00', '\x00'
FROM record_head h, generate_series(1::bigint, :records) n
JOIN (
    SELECT row_number() OVER (ORDER BY number) - 1 AS k, count(*) OVER () AS kinds, *
    FROM (SELECT DISTINCT ON (action) * FROM operation_record ORDER BY action, number DESC) r
) k ON n % k.kinds = k.k;
UPDATE record_head SET number = number + :records, recorded_at = greatest(now(), recorded_at);
SELECT indexdef FROM bench_record_index
\gexec
DROP TABLE bench_record_index;
VACUUM ANALYZE operation_record;
