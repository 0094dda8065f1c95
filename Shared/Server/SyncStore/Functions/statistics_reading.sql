-- How stored oplogs become the record and the figures (m0011_statistics).

-- Folds that these oplogs were accepted; each (channel, oplog) is in the arrays once.
CREATE OR REPLACE FUNCTION fold_accepted_oplogs(
    in_channel bigint[], in_oplog bigint[], in_accepted_ms bigint[], in_is_live boolean[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM lock_statistics();
    PERFORM name_statistics_targets(
        ARRAY(SELECT DISTINCT c FROM unnest(in_channel) c), '{}', '{}', '{}', '{}');
    PERFORM fold_statistics_oplogs(in_channel, in_oplog, in_accepted_ms, in_accepted_ms, in_is_live, '{}', '{}');
END $$;

-- Reads oplogs that are not in the figures yet, about `in_rows` at the most, folds that they were accepted, and moves
-- the snapshot of statistics_reading, all in one transaction. `is_behind`: more can be read now. No row in the answer:
-- another aggregator is reading.
--
-- Lock first, read later: the present snapshot is taken after the row's lock, so it contains the last reader's
-- snapshot. The function reads the transactions that ended between the two: those that ran at the last snapshot
-- (`late`), and those that began after it and do not run now. Later statements of this function see at least the
-- present snapshot.
--
-- Transactions that began later are read in their order, up to `in_rows`, and all rows of a transaction are read
-- together. So each transaction was read or not read as a whole. A transaction must not store more oplogs than can be
-- folded within the caller's time limit; an append stores at most 100.
CREATE OR REPLACE FUNCTION read_accepted_oplogs(in_rows integer)
RETURNS TABLE (oplogs bigint, newest_ms bigint, is_behind boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp
-- As in fold_statistics. In addition, rows are read from the index in its order, and not more than needed.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
    reading statistics_reading;
    next_epoch bigint;
    present record;
    late bigint[];
    got record;
    read_end bigint; -- transactions below it were read, except the running ones
BEGIN
    SELECT * INTO reading FROM statistics_reading r
    WHERE r.epoch = (SELECT min(m.epoch) FROM statistics_reading m) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT min(r.epoch) INTO next_epoch FROM statistics_reading r WHERE r.epoch > reading.epoch;
    IF next_epoch IS NULL THEN
        SELECT * INTO STRICT present FROM present_transactions();
    ELSE
        -- All transactions of another cluster have ended, and their highest number is unknown.
        SELECT 9223372036854775807 AS ends, '{}'::bigint[] AS running INTO present;
    END IF;
    late := ARRAY(SELECT t FROM unnest(reading.unread) t WHERE t <> ALL (present.running));

    WITH looked_at AS MATERIALIZED (
        SELECT o.written_by, o.channel_id, o.oplog_id, o.created_at, o.awaits_outcome, o.recalls
        FROM oplog o WHERE o.written_by = ANY (late)
        UNION ALL
        (SELECT o.written_by, o.channel_id, o.oplog_id, o.created_at, o.awaits_outcome, o.recalls
        FROM oplog o
        WHERE o.written_by >= reading.read_below AND o.written_by < present.ends
            AND o.written_by <> ALL (present.running)
        ORDER BY o.written_by FETCH FIRST in_rows ROWS WITH TIES)
    ), push AS MATERIALIZED (
        SELECT o.channel_id, o.oplog_id, floor(extract(epoch FROM o.created_at) * 1000)::bigint AS created_ms,
            o.awaits_outcome IS NOT NULL AS is_live
        FROM looked_at o
        -- A tombstone is not a push, and transactions do not distinguish the oplogs of another cluster.
        WHERE o.recalls IS NULL AND o.oplog_id >> 40 >= reading.epoch
            AND (next_epoch IS NULL OR o.oplog_id >> 40 < next_epoch)
    )
    SELECT count(*) AS number, array_agg(p.channel_id) AS channels, array_agg(p.oplog_id) AS ids,
        array_agg(p.created_ms) AS created_ms, array_agg(p.is_live) AS is_live, max(p.created_ms) AS newest_ms,
        CASE WHEN (SELECT count(*) FROM looked_at o WHERE o.written_by >= reading.read_below) < in_rows
            THEN present.ends ELSE (SELECT max(o.written_by) + 1 FROM looked_at o) END AS read_end
    INTO STRICT got
    FROM push p;
    read_end := got.read_end;

    IF got.number > 0 THEN
        PERFORM fold_accepted_oplogs(got.channels, got.ids, got.created_ms, got.is_live);
    END IF;
    IF next_epoch IS NOT NULL AND read_end = present.ends THEN
        DELETE FROM statistics_reading r WHERE r.epoch = reading.epoch;
    ELSE
        UPDATE statistics_reading r
        SET read_below = read_end,
            unread = ARRAY(SELECT t FROM unnest(present.running) t WHERE t < read_end)
        WHERE r.epoch = reading.epoch;
    END IF;
    RETURN QUERY SELECT got.number, got.newest_ms, next_epoch IS NOT NULL OR read_end < present.ends;
END $$;

GRANT EXECUTE ON FUNCTION read_accepted_oplogs TO mss_statistics;
