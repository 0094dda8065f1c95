-- Creates and drops the weekly partitions of oplog (Design.md#partitions-and-maintenance).

-- The name of the partition of the week that begins on this Monday (UTC).
CREATE OR REPLACE FUNCTION oplog_partition(in_monday timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'oplog_' || to_char(in_monday AT TIME ZONE 'UTC', 'YYYYMMDD')
$$;

-- The Monday (UTC) that begins the week `in_weeks` weeks from now; 0: the present week.
CREATE OR REPLACE FUNCTION oplog_week(in_weeks integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT (date_trunc('week', now() AT TIME ZONE 'UTC') + make_interval(weeks => in_weeks)) AT TIME ZONE 'UTC'
$$;

-- Creates the partitions from last week to `weeks_ahead` weeks from now.
--
-- No push waits for this. Each table is created separately and then attached: ATTACH PARTITION takes SHARE UPDATE
-- EXCLUSIVE on oplog, which conflicts neither with reads nor with writes, and no statement of a push queues behind a
-- session that waits for it. CREATE TABLE ... PARTITION OF would take ACCESS EXCLUSIVE, behind which every push queues.
-- The new table is empty, so attaching it scans nothing and needs no CHECK that matches the bounds. This function
-- itself waits only briefly for other maintenance of oplog or for an ACCESS EXCLUSIVE lock; its caller repeats the
-- call.
CREATE OR REPLACE FUNCTION ensure_oplog_partitions(weeks_ahead integer) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    monday timestamptz;
    partition text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ensure_oplog_partitions'));
    FOR week IN -1..weeks_ahead LOOP
        monday := oplog_week(week);
        partition := oplog_partition(monday);
        CONTINUE WHEN to_regclass('delivery.' || partition) IS NOT NULL;
        EXECUTE format('CREATE TABLE delivery.%I (LIKE oplog INCLUDING ALL)', partition);
        EXECUTE format(
            'ALTER TABLE oplog ATTACH PARTITION delivery.%I FOR VALUES FROM (%L) TO (%L)', partition, monday,
            monday + interval '7 days');
    END LOOP;
END $$;

-- Whether the present week has a partition for its pushes.
CREATE OR REPLACE FUNCTION has_present_oplog_partition() RETURNS boolean LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_inherits i
        WHERE i.inhparent = 'oplog'::regclass
            AND i.inhrelid = to_regclass('delivery.' || oplog_partition(oplog_week(0))))
$$;

-- Drops a partition that has ended and is detached; other tables stay. No push reads such a partition any more.
CREATE OR REPLACE FUNCTION drop_ended_oplog_partition(in_name text) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp SET lock_timeout = '200ms' AS $$
BEGIN
    IF EXISTS (SELECT FROM ended_oplog_partition e WHERE e.name = in_name AND NOT e.is_attached) THEN
        EXECUTE format('DROP TABLE delivery.%I', in_name);
    END IF;
END $$;

GRANT EXECUTE ON FUNCTION ensure_oplog_partitions, has_present_oplog_partition, drop_ended_oplog_partition
    TO mss_writer;

-- A new database takes pushes before the first maintenance of a writer. Existing partitions stay as they are.
SELECT ensure_oplog_partitions(3);
