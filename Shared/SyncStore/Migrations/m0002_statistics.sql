-- The figures of the statistics aggregator, its only writer. Everything is keyed by channel or instance.

-- Whose a channel is, learned from the facts themselves: the aggregator reads no table of the oplog writer.
CREATE TABLE statistics_channel (
    channel_id bigint PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    target text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL
);
CREATE INDEX statistics_channel_by_target ON statistics_channel (instance_id, kind, target);

-- The earliest of each kind of fact about an oplog; null: none came yet. Facts may come in any order and repeatedly.
CREATE TABLE statistics_oplog (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    accepted_at timestamptz,
    first_handed_out_at timestamptz,
    first_confirmed_at timestamptz,
    PRIMARY KEY (channel_id, oplog_id)
) WITH (fillfactor = 80);

-- How far each device has stored each channel.
CREATE TABLE statistics_stored (
    channel_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    upto bigint NOT NULL,
    stored_at timestamptz NOT NULL,
    PRIMARY KEY (channel_id, device_id)
) WITH (fillfactor = 80);

-- What became of an oplog at one device: the record that the trace reads (spec H7). Null: it has not happened.
CREATE TABLE statistics_delivery (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    handed_out_at timestamptz,
    attempts integer NOT NULL, -- how often the app was given it, as far as the device told
    skipped_at timestamptz,
    skip_reason smallint,
    confirmed_at timestamptz,
    dead_at timestamptz,
    dead_user text COLLATE "C" NOT NULL, -- who was bound when it died
    PRIMARY KEY (channel_id, oplog_id, device_id)
) WITH (fillfactor = 80);
CREATE INDEX statistics_delivery_dead ON statistics_delivery (dead_at) WHERE dead_at IS NOT NULL;

-- Ranges of a backlog that a threshold passed over for one device (spec D10).
CREATE TABLE statistics_discarded (
    channel_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    upto bigint NOT NULL,
    after bigint NOT NULL,
    discarded_at timestamptz NOT NULL,
    PRIMARY KEY (channel_id, device_id, upto)
);

-- Always the sum over statistics_oplog of what its rows contribute: an accepted oplog is one push of the day (UTC) it
-- was accepted on, and one arrival of that same day once a device has confirmed it (spec S2).
CREATE TABLE statistics_day (
    instance_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    day date NOT NULL,
    pushes bigint NOT NULL,
    arrivals bigint NOT NULL,
    PRIMARY KEY (instance_id, biz_type, day)
) WITH (fillfactor = 50);

-- Folds a batch of facts in one transaction; folding it again, or in another order, changes nothing (spec S1).
--
-- Lock first, look later, as in append_oplogs: the statement after the locks sees what earlier holders committed, so
-- the difference that a row makes to its day is counted by exactly one of the aggregators that race for it. All
-- aggregators take their locks in one order: tables as below, rows by key.
--
-- The arrays of oplogs hold each (channel, oplog) at most once, those of channels, of devices, of deliveries and of
-- discarded ranges likewise.
CREATE FUNCTION fold_statistics(
    in_address_channel bigint[], in_instance text[], in_kind smallint[], in_target text[], in_biz_type text[],
    in_channel bigint[], in_oplog bigint[],
    in_accepted_ms bigint[], in_handed_out_ms bigint[], in_confirmed_ms bigint[],
    in_stored_channel bigint[], in_device text[], in_upto bigint[], in_stored_ms bigint[],
    in_delivery_channel bigint[], in_delivery_oplog bigint[], in_delivery_device text[],
    in_delivery_handed_out_ms bigint[], in_attempts bigint[], in_skipped_ms bigint[], in_skip_reason smallint[],
    in_delivery_confirmed_ms bigint[], in_dead_ms bigint[], in_dead_user text[],
    in_discarded_channel bigint[], in_discarded_device text[], in_discarded_after bigint[],
    in_discarded_upto bigint[], in_discarded_ms bigint[]
) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO statistics_channel (channel_id, instance_id, kind, target, biz_type)
    SELECT i.*
    FROM unnest(in_address_channel, in_instance, in_kind, in_target, in_biz_type)
        AS i (channel_id, instance_id, kind, target, biz_type)
    WHERE NOT EXISTS (SELECT FROM statistics_channel c WHERE c.channel_id = i.channel_id)
    ORDER BY i.channel_id
    ON CONFLICT DO NOTHING;

    INSERT INTO statistics_oplog (channel_id, oplog_id)
    SELECT i.channel_id, i.oplog_id
    FROM unnest(in_channel, in_oplog) AS i (channel_id, oplog_id)
    WHERE NOT EXISTS (
        SELECT FROM statistics_oplog s WHERE s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id)
    ORDER BY i.channel_id, i.oplog_id
    ON CONFLICT DO NOTHING;

    PERFORM FROM statistics_oplog s
    JOIN unnest(in_channel, in_oplog) AS i (channel_id, oplog_id)
        ON s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id
    ORDER BY s.channel_id, s.oplog_id
    FOR UPDATE OF s;

    INSERT INTO statistics_stored AS t (channel_id, device_id, upto, stored_at)
    SELECT i.channel_id, i.device_id, i.upto, to_timestamp(i.stored_ms / 1000.0)
    FROM unnest(in_stored_channel, in_device, in_upto, in_stored_ms) AS i (channel_id, device_id, upto, stored_ms)
    ORDER BY i.channel_id, i.device_id COLLATE "C"
    ON CONFLICT (channel_id, device_id) DO UPDATE SET upto = excluded.upto, stored_at = excluded.stored_at
    WHERE t.upto < excluded.upto;

    -- LEAST and GREATEST pass over nulls.
    INSERT INTO statistics_delivery AS t (
        channel_id, oplog_id, device_id, handed_out_at, attempts, skipped_at, skip_reason, confirmed_at, dead_at,
        dead_user)
    SELECT i.channel_id, i.oplog_id, i.device_id, to_timestamp(i.handed_out_ms / 1000.0),
        least(i.attempts, 1000)::integer, to_timestamp(i.skipped_ms / 1000.0), i.skip_reason,
        to_timestamp(i.confirmed_ms / 1000.0),
        to_timestamp(i.dead_ms / 1000.0), i.dead_user
    FROM unnest(
        in_delivery_channel, in_delivery_oplog, in_delivery_device, in_delivery_handed_out_ms, in_attempts,
        in_skipped_ms, in_skip_reason, in_delivery_confirmed_ms, in_dead_ms, in_dead_user
    ) AS i (
        channel_id, oplog_id, device_id, handed_out_ms, attempts, skipped_ms, skip_reason, confirmed_ms, dead_ms,
        dead_user)
    ORDER BY i.channel_id, i.oplog_id, i.device_id COLLATE "C"
    ON CONFLICT (channel_id, oplog_id, device_id) DO UPDATE SET
        handed_out_at = least(t.handed_out_at, excluded.handed_out_at),
        attempts = greatest(t.attempts, excluded.attempts),
        skip_reason = CASE WHEN (t.skipped_at, t.skip_reason) < (excluded.skipped_at, excluded.skip_reason)
            OR excluded.skipped_at IS NULL THEN t.skip_reason ELSE excluded.skip_reason END,
        skipped_at = least(t.skipped_at, excluded.skipped_at),
        confirmed_at = least(t.confirmed_at, excluded.confirmed_at),
        dead_user = CASE WHEN excluded.dead_at IS NULL
                OR (t.dead_at, t.dead_user) > (excluded.dead_at, excluded.dead_user)
            THEN t.dead_user ELSE excluded.dead_user END,
        dead_at = greatest(t.dead_at, excluded.dead_at)
    WHERE (t.handed_out_at, t.attempts, t.skipped_at, t.skip_reason, t.confirmed_at, t.dead_at, t.dead_user)
        IS DISTINCT FROM (excluded.handed_out_at, excluded.attempts, excluded.skipped_at, excluded.skip_reason,
            excluded.confirmed_at, excluded.dead_at, excluded.dead_user);

    INSERT INTO statistics_discarded AS t (channel_id, device_id, upto, after, discarded_at)
    SELECT i.channel_id, i.device_id, i.upto, i.after, to_timestamp(i.at_ms / 1000.0)
    FROM unnest(in_discarded_channel, in_discarded_device, in_discarded_upto, in_discarded_after, in_discarded_ms)
        AS i (channel_id, device_id, upto, after, at_ms)
    ORDER BY i.channel_id, i.device_id COLLATE "C", i.upto
    ON CONFLICT (channel_id, device_id, upto) DO UPDATE SET
        after = least(t.after, excluded.after), discarded_at = least(t.discarded_at, excluded.discarded_at)
    WHERE (t.after, t.discarded_at) IS DISTINCT FROM (excluded.after, excluded.discarded_at);

    WITH folded AS (
        SELECT s.channel_id, s.oplog_id, s.accepted_at AS old_accepted_at, s.first_confirmed_at AS old_confirmed_at,
            least(s.accepted_at, to_timestamp(i.accepted_ms / 1000.0)) AS accepted_at,
            least(s.first_handed_out_at, to_timestamp(i.handed_out_ms / 1000.0)) AS handed_out_at,
            least(s.first_confirmed_at, to_timestamp(i.confirmed_ms / 1000.0)) AS confirmed_at
        FROM unnest(in_channel, in_oplog, in_accepted_ms, in_handed_out_ms, in_confirmed_ms)
            AS i (channel_id, oplog_id, accepted_ms, handed_out_ms, confirmed_ms)
        JOIN statistics_oplog s ON s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id
    ), changed AS (
        UPDATE statistics_oplog s
        SET accepted_at = f.accepted_at, first_handed_out_at = f.handed_out_at, first_confirmed_at = f.confirmed_at
        FROM folded f
        WHERE s.channel_id = f.channel_id AND s.oplog_id = f.oplog_id
            AND (s.accepted_at, s.first_handed_out_at, s.first_confirmed_at)
                IS DISTINCT FROM (f.accepted_at, f.handed_out_at, f.confirmed_at)
        RETURNING f.*
    ), moved AS (
        SELECT c.instance_id, c.biz_type, d.day, sum(d.pushes) AS pushes, sum(d.arrivals) AS arrivals
        FROM changed h
        JOIN statistics_channel c ON c.channel_id = h.channel_id
        CROSS JOIN LATERAL (VALUES
            ((h.old_accepted_at AT TIME ZONE 'UTC')::date, -1, -(h.old_confirmed_at IS NOT NULL)::integer),
            ((h.accepted_at AT TIME ZONE 'UTC')::date, 1, (h.confirmed_at IS NOT NULL)::integer)
        ) AS d (day, pushes, arrivals)
        WHERE d.day IS NOT NULL
        GROUP BY c.instance_id, c.biz_type, d.day
        HAVING sum(d.pushes) <> 0 OR sum(d.arrivals) <> 0
    )
    INSERT INTO statistics_day AS t (instance_id, biz_type, day, pushes, arrivals)
    SELECT m.instance_id, m.biz_type, m.day, m.pushes, m.arrivals FROM moved m
    ORDER BY m.instance_id, m.biz_type, m.day
    ON CONFLICT (instance_id, biz_type, day) DO UPDATE
        SET pushes = t.pushes + excluded.pushes, arrivals = t.arrivals + excluded.arrivals;
END $$;

-- ---- rights of the tiers, and the second belt (see m0001_oplog) ----------------------------------------------------

GRANT EXECUTE ON FUNCTION fold_statistics TO mss_statistics;
GRANT SELECT ON statistics_delivery TO mss_writer, mss_operator;
GRANT SELECT ON statistics_discarded TO mss_operator;
SELECT belt(t) FROM unnest('{statistics_channel,statistics_day}'::regclass[]) t;
