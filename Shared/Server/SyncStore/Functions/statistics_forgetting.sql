-- Deletes old rows of the record and of the figures (m0011_statistics).

-- Removes some rows whose time has ended, the oldest first, and returns how many: about `in_rows` of each kind at the
-- most, so that no fold waits for long. An index finds each row. The figures stay: a sum does not change when its rows
-- are deleted.
CREATE OR REPLACE FUNCTION forget_statistics(in_rows integer) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    record_end timestamptz := now() - interval '35 days';
    day_end date := (now() AT TIME ZONE 'UTC' - interval '400 days')::date;
    channels bigint[];
    oplogs bigint[];
    kept record;
    gone bigint;
    total bigint := 0;
BEGIN
    PERFORM lock_statistics();
    SELECT array_agg(f.channel_id), array_agg(f.oplog_id) INTO channels, oplogs
    FROM (
        SELECT s.channel_id, s.oplog_id FROM statistics_oplog s WHERE s.noted_at < record_end
        ORDER BY s.noted_at LIMIT in_rows
    ) f;
    IF channels IS NOT NULL THEN
        DELETE FROM statistics_delivery WHERE ctid = ANY (ARRAY(
            SELECT d.ctid FROM unnest(channels, oplogs) AS i (channel_id, oplog_id)
            JOIN statistics_delivery d ON d.channel_id = i.channel_id AND d.oplog_id = i.oplog_id LIMIT 2 * in_rows));
        GET DIAGNOSTICS total = ROW_COUNT;
        DELETE FROM statistics_pull WHERE ctid = ANY (ARRAY(
            SELECT p.ctid FROM unnest(channels, oplogs) AS i (channel_id, oplog_id)
            JOIN statistics_pull p ON p.channel_id = i.channel_id AND p.oplog_id = i.oplog_id LIMIT 2 * in_rows));
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
                -- One with millions of devices stays until the rows of all devices are gone.
        DELETE FROM statistics_oplog WHERE ctid = ANY (ARRAY(
            SELECT s.ctid FROM unnest(channels, oplogs) AS i (channel_id, oplog_id)
            JOIN statistics_oplog s ON s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id
            WHERE NOT EXISTS (
                SELECT FROM statistics_delivery d WHERE d.channel_id = i.channel_id AND d.oplog_id = i.oplog_id)
            AND NOT EXISTS (
                SELECT FROM statistics_pull p WHERE p.channel_id = i.channel_id AND p.oplog_id = i.oplog_id)));
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
    END IF;
    FOR kept IN
        SELECT * FROM (VALUES
            ('statistics_discarded', 'discarded_at', record_end::text),
            ('statistics_target_day', 'day', (record_end AT TIME ZONE 'UTC')::date::text),
            ('statistics_accepted', 'begins_at', record_end::text),
            ('statistics_arrival', 'begins_at', record_end::text),
            ('statistics_connected', 'minute', record_end::text),
            ('statistics_day', 'day', day_end::text), ('statistics_day_traits', 'day', day_end::text)
        ) AS k (name, age, ends)
    LOOP
        EXECUTE format(
            'DELETE FROM %1$I WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM %1$I WHERE %2$I < %3$L ORDER BY %2$I LIMIT %4$s))',
            kept.name, kept.age, kept.ends, in_rows);
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
    END LOOP;
    RETURN total;
END $$;

GRANT EXECUTE ON FUNCTION forget_statistics TO mss_statistics;
