-- How facts become the record and the figures of m0002_statistics.

-- A row of the record before and after a fold; before is null for a new one.
CREATE TYPE statistics_oplog_change AS (
    instance_id text COLLATE "C", biz_type text COLLATE "C", before statistics_oplog, after statistics_oplog);
CREATE TYPE statistics_delivery_change AS (
    instance_id text COLLATE "C", biz_type text COLLATE "C", before statistics_delivery, after statistics_delivery);
CREATE TYPE statistics_pull_change AS (before statistics_pull, after statistics_pull);

-- Makes known whose these channels are, and who pulled what: the numbers that the rest goes by. A channel that the
-- writer's table does not have is of a commit that a failover has lost.
CREATE FUNCTION name_statistics_targets(
    in_channels bigint[], in_channel bigint[], in_device text[], in_handed_out_ms bigint[], in_user text[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF EXISTS (
        SELECT FROM unnest(in_channels) AS i (channel_id)
        WHERE NOT EXISTS (SELECT FROM statistics_channel c WHERE c.channel_id = i.channel_id))
    THEN
        INSERT INTO statistics_target (instance_id, kind, target)
        SELECT DISTINCT c.instance_id, c.kind, c.target
        FROM unnest(in_channels) AS i (channel_id)
        JOIN channel c ON c.channel_id = i.channel_id AND c.kind < 2
        WHERE NOT EXISTS (
            SELECT FROM statistics_target t
            WHERE t.instance_id = c.instance_id AND t.kind = c.kind AND t.target = c.target)
        ORDER BY 1, 2, 3
        ON CONFLICT DO NOTHING;

        INSERT INTO statistics_channel (channel_id, instance_id, kind, biz_type, target_id)
        SELECT c.channel_id, c.instance_id, c.kind, c.biz_type, t.target_id
        FROM unnest(in_channels) AS i (channel_id)
        JOIN channel c ON c.channel_id = i.channel_id
        LEFT JOIN statistics_target t
            ON t.instance_id = c.instance_id AND t.kind = c.kind AND t.target = c.target
        WHERE NOT EXISTS (SELECT FROM statistics_channel s WHERE s.channel_id = i.channel_id)
        ORDER BY c.channel_id
        ON CONFLICT DO NOTHING;
    END IF;

    IF EXISTS (
        SELECT FROM unnest(in_channels) AS i (channel_id)
        JOIN statistics_channel c ON c.channel_id = i.channel_id AND c.kind >= 2)
    THEN
        INSERT INTO statistics_target (instance_id, kind, target)
        SELECT DISTINCT c.instance_id, (c.kind - 2)::smallint, p.target
        FROM unnest(in_channel, in_device, in_handed_out_ms, in_user)
            AS i (channel_id, device_id, handed_out_ms, user_id)
        JOIN statistics_channel c ON c.channel_id = i.channel_id AND c.kind >= 2
        CROSS JOIN LATERAL (SELECT CASE c.kind WHEN 2 THEN i.user_id ELSE i.device_id END AS target) p
        WHERE i.handed_out_ms IS NOT NULL AND p.target <> '' AND NOT EXISTS (
            SELECT FROM statistics_target t
            WHERE t.instance_id = c.instance_id AND t.kind = c.kind - 2 AND t.target = p.target)
        ORDER BY 1, 2, 3
        ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- Folds facts about oplogs; each (channel, oplog) stands in the arrays once. Gives the changed rows that count.
--
-- Most rows are new and are written once. What is there already is locked and changed in one statement: a row that had
-- to be waited for is read again once it is held. Locks are taken in one order by all aggregators: tables as in
-- fold_statistics, of each table new rows by key, then old ones by key.
CREATE FUNCTION fold_statistics_oplogs(
    in_channel bigint[], in_oplog bigint[], in_noted_ms bigint[], in_accepted_ms bigint[], in_is_live boolean[],
    in_handed_out_ms bigint[], in_confirmed_ms bigint[]
) RETURNS statistics_oplog_change[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    changes statistics_oplog_change[];
    new_rows bigint;
    moved statistics_oplog_change[];
BEGIN
    WITH made AS (
        INSERT INTO statistics_oplog AS s (
            channel_id, oplog_id, noted_at, target_id, is_live, accepted_at, first_handed_out_at, first_confirmed_at)
        SELECT i.channel_id, i.oplog_id, to_timestamp(i.noted_ms / 1000.0), c.target_id, i.is_live,
            to_timestamp(i.accepted_ms / 1000.0), to_timestamp(i.handed_out_ms / 1000.0),
            to_timestamp(i.confirmed_ms / 1000.0)
        FROM unnest(
            in_channel, in_oplog, in_noted_ms, in_accepted_ms, in_is_live, in_handed_out_ms, in_confirmed_ms
        ) AS i (channel_id, oplog_id, noted_ms, accepted_ms, is_live, handed_out_ms, confirmed_ms)
        JOIN statistics_channel c ON c.channel_id = i.channel_id
        WHERE NOT EXISTS (
            SELECT FROM statistics_oplog s WHERE s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id)
        ORDER BY i.channel_id, i.oplog_id
        ON CONFLICT DO NOTHING
        RETURNING s AS made
    )
    SELECT array_agg(ROW(c.instance_id, c.biz_type, NULL, m.made)::statistics_oplog_change)
            FILTER (WHERE (m.made).counts),
        count(*)
    INTO changes, new_rows
    FROM made m JOIN statistics_channel c ON c.channel_id = (m.made).channel_id;
    IF new_rows = cardinality(in_channel) THEN RETURN changes; END IF;

    WITH held AS (
        SELECT s AS before, n.*
        FROM unnest(
            in_channel, in_oplog, in_noted_ms, in_accepted_ms, in_is_live, in_handed_out_ms, in_confirmed_ms
        ) AS i (channel_id, oplog_id, noted_ms, accepted_ms, is_live, handed_out_ms, confirmed_ms)
        JOIN statistics_oplog s ON s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id
        -- LEAST passes over nulls.
        CROSS JOIN LATERAL (SELECT
            least(s.noted_at, to_timestamp(i.noted_ms / 1000.0)) AS noted_at, s.is_live AND i.is_live AS is_live,
            least(s.accepted_at, to_timestamp(i.accepted_ms / 1000.0)) AS accepted_at,
            least(s.first_handed_out_at, to_timestamp(i.handed_out_ms / 1000.0)) AS handed_out_at,
            least(s.first_confirmed_at, to_timestamp(i.confirmed_ms / 1000.0)) AS confirmed_at) n
        WHERE (s.noted_at, s.is_live, s.accepted_at, s.first_handed_out_at, s.first_confirmed_at)
            IS DISTINCT FROM (n.noted_at, n.is_live, n.accepted_at, n.handed_out_at, n.confirmed_at)
        ORDER BY s.channel_id, s.oplog_id
        FOR UPDATE OF s
    ), changed AS (
        UPDATE statistics_oplog s
        SET noted_at = h.noted_at, is_live = h.is_live, accepted_at = h.accepted_at,
            first_handed_out_at = h.handed_out_at, first_confirmed_at = h.confirmed_at
        FROM held h
        WHERE s.channel_id = (h.before).channel_id AND s.oplog_id = (h.before).oplog_id
        RETURNING h.before, s AS after
    )
    SELECT array_agg(ROW(c.instance_id, c.biz_type, x.before, x.after)::statistics_oplog_change)
            FILTER (WHERE (x.before).counts OR (x.after).counts)
    INTO moved
    FROM changed x JOIN statistics_channel c ON c.channel_id = (x.after).channel_id;
    RETURN changes || moved;
END $$;

-- The same for what became of oplogs at devices. Traits and, of a global push, whose it is are those of the first
-- hand-out.
CREATE FUNCTION fold_statistics_deliveries(
    in_channel bigint[], in_oplog bigint[], in_device text[], in_handed_out_ms bigint[], in_user text[],
    in_operating_system smallint[], in_app_version text[], in_attempts bigint[], in_skipped_ms bigint[],
    in_skip_reason smallint[], in_confirmed_ms bigint[], in_dead_ms bigint[], in_dead_user text[]
) RETURNS statistics_delivery_change[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    changes statistics_delivery_change[];
    new_rows bigint;
    moved statistics_delivery_change[];
BEGIN
    WITH made AS (
        INSERT INTO statistics_delivery AS d (
            channel_id, oplog_id, device_id, handed_out_at, target_id, operating_system, app_version, attempts,
            skipped_at, skip_reason, confirmed_at, dead_at, dead_user)
        SELECT i.channel_id, i.oplog_id, i.device_id, to_timestamp(i.handed_out_ms / 1000.0), t.target_id,
            i.operating_system, i.app_version, least(i.attempts, 1000)::integer,
            to_timestamp(i.skipped_ms / 1000.0), i.skip_reason, to_timestamp(i.confirmed_ms / 1000.0),
            to_timestamp(i.dead_ms / 1000.0), i.dead_user
        FROM unnest(
            in_channel, in_oplog, in_device, in_handed_out_ms, in_user, in_operating_system, in_app_version,
            in_attempts, in_skipped_ms, in_skip_reason, in_confirmed_ms, in_dead_ms, in_dead_user
        ) AS i (
            channel_id, oplog_id, device_id, handed_out_ms, user_id, operating_system, app_version, attempts,
            skipped_ms, skip_reason, confirmed_ms, dead_ms, dead_user)
        JOIN statistics_channel c ON c.channel_id = i.channel_id
        LEFT JOIN statistics_target t ON t.instance_id = c.instance_id AND t.kind = c.kind - 2
            AND t.target = CASE WHEN i.handed_out_ms IS NULL THEN NULL
                WHEN c.kind = 2 THEN i.user_id WHEN c.kind = 3 THEN i.device_id END
        WHERE NOT EXISTS (
            SELECT FROM statistics_delivery d
            WHERE d.channel_id = i.channel_id AND d.oplog_id = i.oplog_id AND d.device_id = i.device_id)
        ORDER BY i.channel_id, i.oplog_id, i.device_id COLLATE "C"
        ON CONFLICT DO NOTHING
        RETURNING d AS made
    )
    SELECT array_agg(ROW(c.instance_id, c.biz_type, NULL, m.made)::statistics_delivery_change), count(*)
    INTO changes, new_rows
    FROM made m JOIN statistics_channel c ON c.channel_id = (m.made).channel_id;
    IF new_rows = cardinality(in_channel) THEN RETURN changes; END IF;

    WITH held AS (
        SELECT d AS before, n.*,
            CASE WHEN f.is_first THEN i.operating_system ELSE d.operating_system END AS operating_system,
            CASE WHEN f.is_first THEN i.app_version ELSE d.app_version END AS app_version,
            CASE WHEN f.is_first THEN t.target_id ELSE d.target_id END AS target_id,
            CASE WHEN (d.skipped_at, d.skip_reason) < (to_timestamp(i.skipped_ms / 1000.0), i.skip_reason)
                OR i.skipped_ms IS NULL THEN d.skip_reason ELSE i.skip_reason END AS skip_reason,
            CASE WHEN i.dead_ms IS NULL
                    OR (d.dead_at, d.dead_user) > (to_timestamp(i.dead_ms / 1000.0), i.dead_user)
                THEN d.dead_user ELSE i.dead_user END AS dead_user
        FROM unnest(
            in_channel, in_oplog, in_device, in_handed_out_ms, in_user, in_operating_system, in_app_version,
            in_attempts, in_skipped_ms, in_skip_reason, in_confirmed_ms, in_dead_ms, in_dead_user
        ) AS i (
            channel_id, oplog_id, device_id, handed_out_ms, user_id, operating_system, app_version, attempts,
            skipped_ms, skip_reason, confirmed_ms, dead_ms, dead_user)
        JOIN statistics_channel c ON c.channel_id = i.channel_id
        LEFT JOIN statistics_target t ON t.instance_id = c.instance_id AND t.kind = c.kind - 2
            AND t.target = CASE WHEN i.handed_out_ms IS NULL THEN NULL
                WHEN c.kind = 2 THEN i.user_id WHEN c.kind = 3 THEN i.device_id END
        JOIN statistics_delivery d
            ON d.channel_id = i.channel_id AND d.oplog_id = i.oplog_id AND d.device_id = i.device_id
        CROSS JOIN LATERAL (SELECT i.handed_out_ms IS NOT NULL AND (d.handed_out_at IS NULL
            OR (to_timestamp(i.handed_out_ms / 1000.0), i.operating_system, i.app_version)
                < (d.handed_out_at, d.operating_system, d.app_version)) AS is_first) f
        CROSS JOIN LATERAL (SELECT
            least(d.handed_out_at, to_timestamp(i.handed_out_ms / 1000.0)) AS handed_out_at,
            greatest(d.attempts, least(i.attempts, 1000)::integer) AS attempts,
            least(d.skipped_at, to_timestamp(i.skipped_ms / 1000.0)) AS skipped_at,
            least(d.confirmed_at, to_timestamp(i.confirmed_ms / 1000.0)) AS confirmed_at,
            greatest(d.dead_at, to_timestamp(i.dead_ms / 1000.0)) AS dead_at) n
        WHERE f.is_first
            OR (d.attempts, d.confirmed_at) IS DISTINCT FROM (n.attempts, n.confirmed_at)
            OR (d.skipped_at, d.skip_reason) > (to_timestamp(i.skipped_ms / 1000.0), i.skip_reason)
            OR d.skipped_at IS NULL AND i.skipped_ms IS NOT NULL
            OR (d.dead_at, d.dead_user) < (to_timestamp(i.dead_ms / 1000.0), i.dead_user)
            OR d.dead_at IS NULL AND i.dead_ms IS NOT NULL
        ORDER BY d.channel_id, d.oplog_id, d.device_id
        FOR UPDATE OF d
    ), changed AS (
        UPDATE statistics_delivery d
        SET handed_out_at = h.handed_out_at, target_id = h.target_id, operating_system = h.operating_system,
            app_version = h.app_version, attempts = h.attempts, skipped_at = h.skipped_at,
            skip_reason = h.skip_reason, confirmed_at = h.confirmed_at, dead_at = h.dead_at, dead_user = h.dead_user
        FROM held h
        WHERE d.channel_id = (h.before).channel_id AND d.oplog_id = (h.before).oplog_id
            AND d.device_id = (h.before).device_id
        RETURNING h.before, d AS after
    )
    SELECT array_agg(ROW(c.instance_id, c.biz_type, x.before, x.after)::statistics_delivery_change) INTO moved
    FROM changed x JOIN statistics_channel c ON c.channel_id = (x.after).channel_id;
    RETURN changes || moved;
END $$;

-- The same for pulls of global pushes, which follow from what became of them at devices.
CREATE FUNCTION fold_statistics_pulls(in_deliveries statistics_delivery_change[])
RETURNS statistics_pull_change[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    changes statistics_pull_change[];
    moved statistics_pull_change[];
BEGIN
    WITH given AS (
        SELECT (i.after).channel_id, (i.after).oplog_id, (i.after).target_id,
            min((i.after).handed_out_at) AS handed_out_at, min((i.after).confirmed_at) AS confirmed_at
        FROM unnest(in_deliveries) i WHERE (i.after).target_id IS NOT NULL
        GROUP BY 1, 2, 3
    ), made AS (
        INSERT INTO statistics_pull AS p (channel_id, oplog_id, target_id, handed_out_at, confirmed_at)
        SELECT g.* FROM given g
        WHERE NOT EXISTS (
            SELECT FROM statistics_pull p
            WHERE p.channel_id = g.channel_id AND p.oplog_id = g.oplog_id AND p.target_id = g.target_id)
        ORDER BY g.channel_id, g.oplog_id, g.target_id
        ON CONFLICT DO NOTHING
        RETURNING p AS made
    )
    SELECT array_agg(ROW(NULL, m.made)::statistics_pull_change) INTO changes FROM made m;

    WITH given AS MATERIALIZED (
        SELECT (i.after).channel_id, (i.after).oplog_id, (i.after).target_id,
            min((i.after).handed_out_at) AS handed_out_at, min((i.after).confirmed_at) AS confirmed_at
        FROM unnest(in_deliveries) i WHERE (i.after).target_id IS NOT NULL
        GROUP BY 1, 2, 3
    ), held AS (
        SELECT p AS before, n.*
        FROM given g
        JOIN statistics_pull p
            ON p.channel_id = g.channel_id AND p.oplog_id = g.oplog_id AND p.target_id = g.target_id
        CROSS JOIN LATERAL (SELECT least(p.handed_out_at, g.handed_out_at) AS handed_out_at,
            least(p.confirmed_at, g.confirmed_at) AS confirmed_at) n
        WHERE (p.handed_out_at, p.confirmed_at) IS DISTINCT FROM (n.handed_out_at, n.confirmed_at)
        ORDER BY p.channel_id, p.oplog_id, p.target_id
        FOR UPDATE OF p
    ), changed AS (
        UPDATE statistics_pull p SET handed_out_at = h.handed_out_at, confirmed_at = h.confirmed_at
        FROM held h
        WHERE p.channel_id = (h.before).channel_id AND p.oplog_id = (h.before).oplog_id
            AND p.target_id = (h.before).target_id
        RETURNING h.before, p AS after
    )
    SELECT array_agg(ROW(x.before, x.after)::statistics_pull_change) INTO moved FROM changed x;
    RETURN changes || moved;
END $$;

-- Adds the differences that changed rows make.
CREATE FUNCTION count_statistics(
    in_oplogs statistics_oplog_change[], in_deliveries statistics_delivery_change[], in_pulls statistics_pull_change[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO statistics_target_day AS t (target_id, day, pushes, arrivals)
    SELECT d.target_id, d.day, sum(d.sign), coalesce(sum(d.sign) FILTER (WHERE d.has_arrived), 0)
    FROM (
        SELECT (v.oplog).target_id, ((v.oplog).accepted_at AT TIME ZONE 'UTC')::date, v.sign,
            (v.oplog).first_confirmed_at IS NOT NULL
        FROM unnest(in_oplogs) x CROSS JOIN LATERAL (VALUES (x.before, -1), (x.after, 1)) AS v (oplog, sign)
        WHERE (v.oplog).counts AND (v.oplog).target_id IS NOT NULL
        UNION ALL
        SELECT (v.pull).target_id, ((v.pull).handed_out_at AT TIME ZONE 'UTC')::date, v.sign,
            (v.pull).confirmed_at IS NOT NULL
        FROM unnest(in_pulls) x CROSS JOIN LATERAL (VALUES (x.before, -1), (x.after, 1)) AS v (pull, sign)
        WHERE (v.pull).target_id IS NOT NULL
    ) AS d (target_id, day, sign, has_arrived)
    GROUP BY d.target_id, d.day
    HAVING sum(d.sign) <> 0 OR coalesce(sum(d.sign) FILTER (WHERE d.has_arrived), 0) <> 0
    ORDER BY d.target_id, d.day
    ON CONFLICT (target_id, day) DO UPDATE
        SET pushes = t.pushes + excluded.pushes, arrivals = t.arrivals + excluded.arrivals;

    INSERT INTO statistics_day_traits AS t (
        instance_id, biz_type, day, operating_system, app_version, handed_out, confirmed)
    SELECT x.instance_id, x.biz_type, ((v.delivery).handed_out_at AT TIME ZONE 'UTC')::date AS day,
        (v.delivery).operating_system AS operating_system, (v.delivery).app_version AS app_version, sum(v.sign),
        coalesce(sum(v.sign) FILTER (WHERE (v.delivery).confirmed_at IS NOT NULL), 0)
    FROM unnest(in_deliveries) x CROSS JOIN LATERAL (VALUES (x.before, -1), (x.after, 1)) AS v (delivery, sign)
    WHERE (v.delivery).handed_out_at IS NOT NULL
    GROUP BY x.instance_id, x.biz_type, day, operating_system, app_version
    HAVING sum(v.sign) <> 0 OR coalesce(sum(v.sign) FILTER (WHERE (v.delivery).confirmed_at IS NOT NULL), 0) <> 0
    ORDER BY x.instance_id, day, x.biz_type, operating_system, app_version
    ON CONFLICT (instance_id, day, biz_type, operating_system, app_version) DO UPDATE
        SET handed_out = t.handed_out + excluded.handed_out, confirmed = t.confirmed + excluded.confirmed;

    INSERT INTO statistics_day AS t (instance_id, biz_type, day, pushes, arrivals, dead_letters)
    SELECT d.instance_id, d.biz_type, d.day, sum(d.pushes), sum(d.arrivals), sum(d.dead_letters)
    FROM (
        SELECT x.instance_id, x.biz_type, ((v.oplog).accepted_at AT TIME ZONE 'UTC')::date, v.sign,
            CASE WHEN (v.oplog).first_confirmed_at IS NULL THEN 0 ELSE v.sign END, 0
        FROM unnest(in_oplogs) x CROSS JOIN LATERAL (VALUES (x.before, -1), (x.after, 1)) AS v (oplog, sign)
        WHERE (v.oplog).counts
        UNION ALL
        SELECT x.instance_id, x.biz_type, ((v.delivery).dead_at AT TIME ZONE 'UTC')::date, 0, 0, v.sign
        FROM unnest(in_deliveries) x CROSS JOIN LATERAL (VALUES (x.before, -1), (x.after, 1)) AS v (delivery, sign)
        WHERE (v.delivery).dead_at IS NOT NULL AND (v.delivery).confirmed_at IS NULL
    ) AS d (instance_id, biz_type, day, pushes, arrivals, dead_letters)
    GROUP BY d.instance_id, d.biz_type, d.day
    HAVING sum(d.pushes) <> 0 OR sum(d.arrivals) <> 0 OR sum(d.dead_letters) <> 0
    ORDER BY d.instance_id, d.day, d.biz_type
    ON CONFLICT (instance_id, day, biz_type) DO UPDATE
        SET pushes = t.pushes + excluded.pushes, arrivals = t.arrivals + excluded.arrivals,
            dead_letters = t.dead_letters + excluded.dead_letters;

    INSERT INTO statistics_accepted AS t (instance_id, span_minutes, begins_at, pushes)
    SELECT x.instance_id, s.minutes, date_trunc(s.unit, (v.oplog).accepted_at, 'UTC') AS begins_at, sum(v.sign)
    FROM unnest(in_oplogs) x CROSS JOIN LATERAL (VALUES (x.before, -1), (x.after, 1)) AS v (oplog, sign)
    CROSS JOIN (VALUES (1, 'minute'), (60, 'hour')) AS s (minutes, unit)
    WHERE (v.oplog).counts
    GROUP BY x.instance_id, s.minutes, begins_at HAVING sum(v.sign) <> 0
    ORDER BY x.instance_id, s.minutes, begins_at
    ON CONFLICT (instance_id, span_minutes, begins_at) DO UPDATE SET pushes = t.pushes + excluded.pushes;

    INSERT INTO statistics_arrival AS t (instance_id, span_minutes, begins_at, bucket, arrivals)
    SELECT x.instance_id, s.minutes, date_trunc(s.unit, (v.oplog).first_confirmed_at, 'UTC') AS begins_at,
        width_bucket(
            extract(epoch FROM (v.oplog).first_confirmed_at - (v.oplog).accepted_at)::float8 * 1000,
            '{1,2,5,10,20,50,100,200,500,1e3,2e3,5e3,1e4,2e4,5e4,1e5,2e5,5e5,1e6,2e6,5e6,1e7,2e7,5e7}'::float8[]
        )::smallint AS bucket, sum(v.sign)
    FROM unnest(in_oplogs) x CROSS JOIN LATERAL (VALUES (x.before, -1), (x.after, 1)) AS v (oplog, sign)
    CROSS JOIN (VALUES (1, 'minute'), (60, 'hour')) AS s (minutes, unit)
    WHERE (v.oplog).counts AND (v.oplog).first_confirmed_at IS NOT NULL
    GROUP BY x.instance_id, s.minutes, begins_at, bucket HAVING sum(v.sign) <> 0
    ORDER BY x.instance_id, s.minutes, begins_at, bucket
    ON CONFLICT (instance_id, span_minutes, begins_at, bucket) DO UPDATE SET arrivals = t.arrivals + excluded.arrivals;
END $$;

-- Folds a batch of facts in one transaction; folding it again, or in another order, changes nothing (spec S1).
--
-- The arrays of channels, of oplogs, of deliveries, of discarded ranges and of connected devices hold each key once;
-- every delivery's oplog is among the oplogs, and every channel among the channels.
CREATE FUNCTION fold_statistics(
    in_channels bigint[],
    in_channel bigint[], in_oplog bigint[], in_noted_ms bigint[], in_accepted_ms bigint[], in_is_live boolean[],
    in_handed_out_ms bigint[], in_confirmed_ms bigint[],
    in_delivery_channel bigint[], in_delivery_oplog bigint[], in_delivery_device text[],
    in_delivery_handed_out_ms bigint[], in_user text[], in_operating_system smallint[], in_app_version text[],
    in_attempts bigint[], in_skipped_ms bigint[], in_skip_reason smallint[],
    in_delivery_confirmed_ms bigint[], in_dead_ms bigint[], in_dead_user text[],
    in_discarded_channel bigint[], in_discarded_device text[], in_discarded_after bigint[],
    in_discarded_upto bigint[], in_discarded_ms bigint[],
    in_connected_instance text[], in_connected_gateway text[], in_connected_ms bigint[], in_connected_devices bigint[]
) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    oplogs statistics_oplog_change[];
    deliveries statistics_delivery_change[];
    pulls statistics_pull_change[];
BEGIN
    PERFORM name_statistics_targets(
        in_channels, in_delivery_channel, in_delivery_device, in_delivery_handed_out_ms, in_user);
    oplogs := fold_statistics_oplogs(
        in_channel, in_oplog, in_noted_ms, in_accepted_ms, in_is_live, in_handed_out_ms, in_confirmed_ms);
    deliveries := fold_statistics_deliveries(
        in_delivery_channel, in_delivery_oplog, in_delivery_device, in_delivery_handed_out_ms, in_user,
        in_operating_system, in_app_version, in_attempts, in_skipped_ms, in_skip_reason, in_delivery_confirmed_ms,
        in_dead_ms, in_dead_user);
    IF EXISTS (SELECT FROM unnest(deliveries) d WHERE (d.after).target_id IS NOT NULL) THEN
        pulls := fold_statistics_pulls(deliveries);
    END IF;

    INSERT INTO statistics_discarded AS t (channel_id, device_id, upto, after, discarded_at)
    SELECT i.channel_id, i.device_id, i.upto, i.after, to_timestamp(i.at_ms / 1000.0)
    FROM unnest(in_discarded_channel, in_discarded_device, in_discarded_upto, in_discarded_after, in_discarded_ms)
        AS i (channel_id, device_id, upto, after, at_ms)
    ORDER BY i.channel_id, i.device_id COLLATE "C", i.upto
    ON CONFLICT (channel_id, device_id, upto) DO UPDATE SET
        after = least(t.after, excluded.after), discarded_at = least(t.discarded_at, excluded.discarded_at)
    WHERE (t.after, t.discarded_at) IS DISTINCT FROM (excluded.after, excluded.discarded_at);

    PERFORM count_statistics(oplogs, deliveries, pulls);

    INSERT INTO statistics_connected AS t (instance_id, minute, gateway_id, devices)
    SELECT i.instance_id, date_trunc('minute', to_timestamp(i.at_ms / 1000.0)), i.gateway_id,
        least(i.devices, 2147483647)::integer
    FROM unnest(in_connected_instance, in_connected_gateway, in_connected_ms, in_connected_devices)
        AS i (instance_id, gateway_id, at_ms, devices)
    ORDER BY i.instance_id COLLATE "C", i.at_ms, i.gateway_id COLLATE "C"
    ON CONFLICT (instance_id, minute, gateway_id) DO UPDATE SET devices = excluded.devices
    WHERE t.devices < excluded.devices;
END $$;

GRANT EXECUTE ON FUNCTION fold_statistics TO mss_statistics;
