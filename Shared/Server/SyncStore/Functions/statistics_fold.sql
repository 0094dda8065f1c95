-- How facts become the record and the figures (m0011_statistics).

-- Locks folding and forgetting for other transactions until the end of this one. So a transaction may read a row and
-- write it later, without row locks and conflicts. A fold takes some tens of microseconds for each push, so there is
-- time for one transaction after another; but one may take longer than the session's limit for a row lock, so the limit
-- here is 4 s.
CREATE OR REPLACE FUNCTION lock_statistics() RETURNS void LANGUAGE sql VOLATILE SET lock_timeout = '4s' AS $$
    SELECT pg_advisory_xact_lock(hashtext('statistics'))
$$;

-- Adds the missing targets and channels of a batch, and the targets that pulled global pushes. A channel that is not in
-- the writer's table belongs to a commit that a failover has lost.
CREATE OR REPLACE FUNCTION name_statistics_targets(
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
        JOIN channel c ON c.channel_id = i.channel_id AND c.kind < 2 /* appointed */
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
        JOIN statistics_channel c ON c.channel_id = i.channel_id AND c.kind >= 2 /* global */)
    THEN
        WITH puller AS MATERIALIZED (
            SELECT DISTINCT c.instance_id, (c.kind - 2)::smallint AS kind, -- appointed, with the same target
                CASE c.kind WHEN 2 /* globalUser */ THEN i.user_id ELSE i.device_id END AS target
            FROM unnest(in_channel, in_device, in_handed_out_ms, in_user)
                AS i (channel_id, device_id, handed_out_ms, user_id)
            JOIN statistics_channel c ON c.channel_id = i.channel_id AND c.kind >= 2 /* global */
            WHERE i.handed_out_ms IS NOT NULL
        )
        INSERT INTO statistics_target (instance_id, kind, target)
        SELECT p.instance_id, p.kind, p.target
        FROM puller p
        WHERE p.target <> '' AND NOT EXISTS (
            SELECT FROM statistics_target t
            WHERE t.instance_id = p.instance_id AND t.kind = p.kind AND t.target = p.target)
        ORDER BY 1, 2, 3
        ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- Folds events of oplogs; each (channel, oplog) is in the arrays once. The last five arrays may be shorter: missing
-- values are unknown.
--
-- The record is read once: the old and the new state of a row give the rows to write and the differences to count. No
-- row changes in between, because only one transaction folds or forgets at a time.
CREATE OR REPLACE FUNCTION fold_statistics_oplogs(
    in_channel bigint[], in_oplog bigint[], in_noted_ms bigint[], in_accepted_ms bigint[], in_is_live boolean[],
    in_handed_out_ms bigint[], in_confirmed_ms bigint[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH folded AS MATERIALIZED (
        SELECT i.channel_id, i.oplog_id, c.instance_id, c.biz_type, c.target_id,
            s.ctid AS row_id, s.counts AS counted, s.accepted_at AS old_accepted_at,
            s.first_confirmed_at AS old_confirmed_at,
            -- LEAST ignores nulls. The acceptance is normally earlier than every fact, so the reading that finds it
            -- later does not change the row.
            least(
                s.noted_at, to_timestamp(i.noted_ms::float8 / 1000), to_timestamp(i.accepted_ms::float8 / 1000)
            ) AS noted_at,
            -- Known with the acceptance.
            CASE WHEN i.accepted_ms IS NULL THEN s.is_live IS NOT false ELSE i.is_live END AS is_live,
            least(s.accepted_at, to_timestamp(i.accepted_ms::float8 / 1000)) AS accepted_at,
            least(s.first_handed_out_at, to_timestamp(i.handed_out_ms::float8 / 1000)) AS handed_out_at,
            least(s.first_confirmed_at, to_timestamp(i.confirmed_ms::float8 / 1000)) AS confirmed_at
        FROM unnest(
            in_channel, in_oplog, in_noted_ms, in_accepted_ms, in_is_live, in_handed_out_ms, in_confirmed_ms
        ) AS i (channel_id, oplog_id, noted_ms, accepted_ms, is_live, handed_out_ms, confirmed_ms)
        -- Results of operations are not pushes; they are counted with the operations.
        JOIN statistics_channel c ON c.channel_id = i.channel_id AND c.biz_type <> 'MSS_RESULTS'
        LEFT JOIN statistics_oplog s ON s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id
    ), made AS (
        INSERT INTO statistics_oplog (
            channel_id, oplog_id, noted_at, target_id, is_live, accepted_at, first_handed_out_at, first_confirmed_at)
        SELECT f.channel_id, f.oplog_id, f.noted_at, f.target_id, f.is_live, f.accepted_at, f.handed_out_at,
            f.confirmed_at
        FROM folded f WHERE f.row_id IS NULL
    ), changed AS (
        UPDATE statistics_oplog s
        SET noted_at = f.noted_at, is_live = f.is_live, accepted_at = f.accepted_at,
            first_handed_out_at = f.handed_out_at, first_confirmed_at = f.confirmed_at
        FROM folded f
        WHERE s.ctid = f.row_id
            AND (s.noted_at, s.is_live, s.accepted_at, s.first_handed_out_at, s.first_confirmed_at)
                IS DISTINCT FROM (f.noted_at, f.is_live, f.accepted_at, f.handed_out_at, f.confirmed_at)
    ), counted AS MATERIALIZED (
        SELECT f.instance_id, f.biz_type, f.target_id, f.accepted_at, f.confirmed_at, 1 AS sign FROM folded f
        WHERE counts_as_push(f.is_live, f.accepted_at, f.handed_out_at, f.confirmed_at)
        UNION ALL
        SELECT f.instance_id, f.biz_type, f.target_id, f.old_accepted_at, f.old_confirmed_at, -1 FROM folded f
        WHERE f.counted
    ), of_targets AS (
        INSERT INTO statistics_target_day AS t (target_id, day, pushes, arrivals)
        SELECT d.target_id, (d.accepted_at AT TIME ZONE 'UTC')::date AS day, sum(d.sign),
            coalesce(sum(d.sign) FILTER (WHERE d.confirmed_at IS NOT NULL), 0)
        FROM counted d WHERE d.target_id IS NOT NULL
        GROUP BY d.target_id, day
        HAVING sum(d.sign) <> 0 OR coalesce(sum(d.sign) FILTER (WHERE d.confirmed_at IS NOT NULL), 0) <> 0
        ON CONFLICT (target_id, day) DO UPDATE
            SET pushes = t.pushes + excluded.pushes, arrivals = t.arrivals + excluded.arrivals
    ), sums AS MATERIALIZED (
        -- The remaining figures are counted from these few rows, however many pushes there are.
        SELECT d.instance_id, d.biz_type, date_bin('1 minute', d.accepted_at, 'epoch') AS accepted_in,
            date_bin('1 minute', d.confirmed_at, 'epoch') AS confirmed_in,
            width_bucket(
                date_part('epoch', d.confirmed_at - d.accepted_at) * 1000,
                '{1,2,5,10,20,50,100,200,500,1e3,2e3,5e3,1e4,2e4,5e4,1e5,2e5,5e5,1e6,2e6,5e6,1e7,2e7,5e7}'::float8[]
            )::smallint AS bucket, sum(d.sign) AS pushes
        FROM counted d
        GROUP BY d.instance_id, d.biz_type, accepted_in, confirmed_in, bucket HAVING sum(d.sign) <> 0
    ), of_days AS (
        INSERT INTO statistics_day AS t (instance_id, biz_type, day, pushes, arrivals, dead_letters)
        SELECT d.instance_id, d.biz_type, (d.accepted_in AT TIME ZONE 'UTC')::date AS day, sum(d.pushes),
            coalesce(sum(d.pushes) FILTER (WHERE d.confirmed_in IS NOT NULL), 0), 0
        FROM sums d
        GROUP BY d.instance_id, d.biz_type, day
        HAVING sum(d.pushes) <> 0 OR coalesce(sum(d.pushes) FILTER (WHERE d.confirmed_in IS NOT NULL), 0) <> 0
        ON CONFLICT (instance_id, day, biz_type) DO UPDATE
            SET pushes = t.pushes + excluded.pushes, arrivals = t.arrivals + excluded.arrivals
    ), accepted AS (
        INSERT INTO statistics_accepted AS t (instance_id, span_minutes, begins_at, pushes)
        SELECT d.instance_id, s.minutes, date_bin(s.span, d.accepted_in, 'epoch') AS begins_at, sum(d.pushes)
        FROM sums d CROSS JOIN (VALUES (1, interval '1 minute'), (60, interval '1 hour')) AS s (minutes, span)
        GROUP BY d.instance_id, s.minutes, begins_at HAVING sum(d.pushes) <> 0
        ON CONFLICT (instance_id, span_minutes, begins_at) DO UPDATE SET pushes = t.pushes + excluded.pushes
    )
    INSERT INTO statistics_arrival AS t (instance_id, span_minutes, begins_at, bucket, arrivals)
    SELECT d.instance_id, s.minutes, date_bin(s.span, d.confirmed_in, 'epoch') AS begins_at, d.bucket, sum(d.pushes)
    FROM sums d CROSS JOIN (VALUES (1, interval '1 minute'), (60, interval '1 hour')) AS s (minutes, span)
    WHERE d.confirmed_in IS NOT NULL
    GROUP BY d.instance_id, s.minutes, begins_at, d.bucket HAVING sum(d.pushes) <> 0
    ON CONFLICT (instance_id, span_minutes, begins_at, bucket) DO UPDATE SET arrivals = t.arrivals + excluded.arrivals;
END $$;

-- Folds events of oplogs at devices. The traits, and the target of a global push, are those of the first hand-out; the
-- pulls follow from them.
CREATE OR REPLACE FUNCTION fold_statistics_deliveries(
    in_channel bigint[], in_oplog bigint[], in_device text[], in_handed_out_ms bigint[], in_user text[],
    in_operating_system smallint[], in_app_version text[], in_attempts bigint[], in_skipped_ms bigint[],
    in_skip_reason smallint[], in_confirmed_ms bigint[], in_dead_ms bigint[], in_dead_user text[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH given AS MATERIALIZED (
        SELECT i.*, c.instance_id, c.biz_type, (c.kind - 2)::smallint AS puller_kind,
            CASE WHEN i.handed_out_ms IS NULL THEN NULL WHEN c.kind = 2 /* globalUser */ THEN i.user_id
                WHEN c.kind = 3 /* globalDevice */ THEN i.device_id END AS puller,
            to_timestamp(i.handed_out_ms::float8 / 1000) AS handed_out_at,
            to_timestamp(i.skipped_ms::float8 / 1000) AS skipped_at,
            to_timestamp(i.confirmed_ms::float8 / 1000) AS confirmed_at,
            to_timestamp(i.dead_ms::float8 / 1000) AS dead_at
        FROM unnest(
            in_channel, in_oplog, in_device, in_handed_out_ms, in_user, in_operating_system, in_app_version,
            in_attempts, in_skipped_ms, in_skip_reason, in_confirmed_ms, in_dead_ms, in_dead_user
        ) AS i (
            channel_id, oplog_id, device_id, handed_out_ms, user_id, operating_system, app_version, attempts,
            skipped_ms, skip_reason, confirmed_ms, dead_ms, dead_user)
        JOIN statistics_channel c ON c.channel_id = i.channel_id AND c.biz_type <> 'MSS_RESULTS'
    ), folded AS MATERIALIZED (
        SELECT i.channel_id, i.oplog_id, i.device_id, i.instance_id, i.biz_type,
            d.ctid AS row_id, d.handed_out_at AS old_handed_out_at, d.operating_system AS old_operating_system,
            d.app_version AS old_app_version, d.confirmed_at AS old_confirmed_at, d.dead_at AS old_dead_at,
            least(d.handed_out_at, i.handed_out_at) AS handed_out_at,
            CASE WHEN f.is_first THEN t.target_id ELSE d.target_id END AS target_id,
            CASE WHEN f.is_first THEN i.operating_system ELSE d.operating_system END AS operating_system,
            CASE WHEN f.is_first THEN i.app_version ELSE d.app_version END AS app_version,
            greatest(d.attempts, least(i.attempts, 1000)::integer) AS attempts,
            least(d.skipped_at, i.skipped_at) AS skipped_at,
            CASE WHEN i.skipped_at IS NULL OR (d.skipped_at, d.skip_reason) < (i.skipped_at, i.skip_reason)
                THEN d.skip_reason ELSE i.skip_reason END AS skip_reason,
            least(d.confirmed_at, i.confirmed_at) AS confirmed_at,
            greatest(d.dead_at, i.dead_at) AS dead_at,
            CASE WHEN d.channel_id IS NOT NULL
                    AND (i.dead_at IS NULL OR (d.dead_at, d.dead_user) > (i.dead_at, i.dead_user))
                THEN d.dead_user ELSE i.dead_user END AS dead_user
        FROM given i
        LEFT JOIN statistics_target t
            ON t.instance_id = i.instance_id AND t.kind = i.puller_kind AND t.target = i.puller
        LEFT JOIN statistics_delivery d
            ON d.channel_id = i.channel_id AND d.oplog_id = i.oplog_id AND d.device_id = i.device_id
        CROSS JOIN LATERAL (SELECT d.channel_id IS NULL OR i.handed_out_at IS NOT NULL AND (d.handed_out_at IS NULL
            OR (i.handed_out_at, i.operating_system, i.app_version)
                < (d.handed_out_at, d.operating_system, d.app_version)) AS is_first) f
    ), made AS (
        INSERT INTO statistics_delivery (
            channel_id, oplog_id, device_id, handed_out_at, target_id, operating_system, app_version, attempts,
            skipped_at, skip_reason, confirmed_at, dead_at, dead_user)
        SELECT f.channel_id, f.oplog_id, f.device_id, f.handed_out_at, f.target_id, f.operating_system, f.app_version,
            f.attempts, f.skipped_at, f.skip_reason, f.confirmed_at, f.dead_at, f.dead_user
        FROM folded f WHERE f.row_id IS NULL
    ), changed AS (
        UPDATE statistics_delivery d
        SET handed_out_at = f.handed_out_at, target_id = f.target_id, operating_system = f.operating_system,
            app_version = f.app_version, attempts = f.attempts, skipped_at = f.skipped_at,
            skip_reason = f.skip_reason, confirmed_at = f.confirmed_at, dead_at = f.dead_at, dead_user = f.dead_user
        FROM folded f
        WHERE d.ctid = f.row_id
            AND (d.handed_out_at, d.target_id, d.operating_system, d.app_version, d.attempts, d.skipped_at,
                d.skip_reason, d.confirmed_at, d.dead_at, d.dead_user)
                IS DISTINCT FROM (f.handed_out_at, f.target_id, f.operating_system, f.app_version, f.attempts,
                f.skipped_at, f.skip_reason, f.confirmed_at, f.dead_at, f.dead_user)
    ), traits AS (
        INSERT INTO statistics_day_traits AS t (
            instance_id, biz_type, day, operating_system, app_version, handed_out, confirmed)
        SELECT x.instance_id, x.biz_type, (x.handed_out_at AT TIME ZONE 'UTC')::date AS day, x.operating_system,
            x.app_version, sum(x.sign), coalesce(sum(x.sign) FILTER (WHERE x.confirmed_at IS NOT NULL), 0)
        FROM (
            SELECT f.instance_id, f.biz_type, f.handed_out_at, f.operating_system, f.app_version, f.confirmed_at, 1
            FROM folded f
            UNION ALL
            SELECT f.instance_id, f.biz_type, f.old_handed_out_at, f.old_operating_system, f.old_app_version,
                f.old_confirmed_at, -1
            FROM folded f
        ) AS x (instance_id, biz_type, handed_out_at, operating_system, app_version, confirmed_at, sign)
        WHERE x.handed_out_at IS NOT NULL
        GROUP BY x.instance_id, x.biz_type, day, x.operating_system, x.app_version
        HAVING sum(x.sign) <> 0 OR coalesce(sum(x.sign) FILTER (WHERE x.confirmed_at IS NOT NULL), 0) <> 0
        ON CONFLICT (instance_id, day, biz_type, operating_system, app_version) DO UPDATE
            SET handed_out = t.handed_out + excluded.handed_out, confirmed = t.confirmed + excluded.confirmed
    ), deaths AS (
        INSERT INTO statistics_day AS t (instance_id, biz_type, day, pushes, arrivals, dead_letters)
        SELECT x.instance_id, x.biz_type, (x.dead_at AT TIME ZONE 'UTC')::date AS day, 0, 0, sum(x.sign)
        FROM (
            SELECT f.instance_id, f.biz_type, f.dead_at, f.confirmed_at, 1 FROM folded f
            UNION ALL
            SELECT f.instance_id, f.biz_type, f.old_dead_at, f.old_confirmed_at, -1 FROM folded f
        ) AS x (instance_id, biz_type, dead_at, confirmed_at, sign)
        WHERE x.dead_at IS NOT NULL AND x.confirmed_at IS NULL
        GROUP BY x.instance_id, x.biz_type, day HAVING sum(x.sign) <> 0
        ON CONFLICT (instance_id, day, biz_type) DO UPDATE SET dead_letters = t.dead_letters + excluded.dead_letters
    ), pulled AS MATERIALIZED (
        SELECT g.channel_id, g.oplog_id, g.target_id, p.ctid AS row_id, p.handed_out_at AS old_handed_out_at,
            p.confirmed_at AS old_confirmed_at, least(p.handed_out_at, g.handed_out_at) AS handed_out_at,
            least(p.confirmed_at, g.confirmed_at) AS confirmed_at
        FROM (
            SELECT f.channel_id, f.oplog_id, f.target_id, min(f.handed_out_at), min(f.confirmed_at)
            FROM folded f WHERE f.target_id IS NOT NULL
            GROUP BY f.channel_id, f.oplog_id, f.target_id
        ) AS g (channel_id, oplog_id, target_id, handed_out_at, confirmed_at)
        LEFT JOIN statistics_pull p
            ON p.channel_id = g.channel_id AND p.oplog_id = g.oplog_id AND p.target_id = g.target_id
    ), made_pulls AS (
        INSERT INTO statistics_pull (channel_id, oplog_id, target_id, handed_out_at, confirmed_at)
        SELECT f.channel_id, f.oplog_id, f.target_id, f.handed_out_at, f.confirmed_at
        FROM pulled f WHERE f.row_id IS NULL
    ), changed_pulls AS (
        UPDATE statistics_pull p SET handed_out_at = f.handed_out_at, confirmed_at = f.confirmed_at
        FROM pulled f
        WHERE p.ctid = f.row_id
            AND (p.handed_out_at, p.confirmed_at) IS DISTINCT FROM (f.handed_out_at, f.confirmed_at)
    )
    INSERT INTO statistics_target_day AS t (target_id, day, pushes, arrivals)
    SELECT x.target_id, (x.handed_out_at AT TIME ZONE 'UTC')::date AS day, sum(x.sign),
        coalesce(sum(x.sign) FILTER (WHERE x.confirmed_at IS NOT NULL), 0)
    FROM (
        SELECT f.target_id, f.handed_out_at, f.confirmed_at, 1 FROM pulled f
        UNION ALL
        SELECT f.target_id, f.old_handed_out_at, f.old_confirmed_at, -1 FROM pulled f
    ) AS x (target_id, handed_out_at, confirmed_at, sign)
    WHERE x.handed_out_at IS NOT NULL
    GROUP BY x.target_id, day
    HAVING sum(x.sign) <> 0 OR coalesce(sum(x.sign) FILTER (WHERE x.confirmed_at IS NOT NULL), 0) <> 0
    ON CONFLICT (target_id, day) DO UPDATE
        SET pushes = t.pushes + excluded.pushes, arrivals = t.arrivals + excluded.arrivals;
END $$;

-- Folds a batch of facts in one transaction; folding it again, or in another order, changes nothing (S1).
--
-- The arrays of channels, of oplogs, of deliveries, of discarded ranges and of connected devices have each key once.
-- The oplog of every delivery is among the oplogs, and every channel among the channels.
--
-- A stored oplog was accepted. The fold writes that with the facts, so that read_accepted_oplogs, which runs later,
-- does not write the row again. Oplogs above an age of 33 days are left out: forget_statistics may have removed their
-- rows, and they would count again.
CREATE OR REPLACE FUNCTION fold_statistics(
    in_channels bigint[],
    in_channel bigint[], in_oplog bigint[], in_noted_ms bigint[], in_handed_out_ms bigint[], in_confirmed_ms bigint[],
    in_delivery_channel bigint[], in_delivery_oplog bigint[], in_delivery_device text[],
    in_delivery_handed_out_ms bigint[], in_user text[], in_operating_system smallint[], in_app_version text[],
    in_attempts bigint[], in_skipped_ms bigint[], in_skip_reason smallint[],
    in_delivery_confirmed_ms bigint[], in_dead_ms bigint[], in_dead_user text[],
    in_discarded_channel bigint[], in_discarded_device text[], in_discarded_after bigint[],
    in_discarded_upto bigint[], in_discarded_ms bigint[],
    in_connected_instance text[], in_connected_gateway text[], in_connected_ms bigint[], in_connected_devices bigint[]
) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, delivery, pg_temp
-- Plans are made once, often while the record is still empty, and must be right when it is large: by indexes, and by
-- all columns of an index. So a table is joined only by columns of one relation.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    accepted_ms bigint[];
    is_live boolean[];
BEGIN
    SELECT array_agg(floor(extract(epoch FROM o.created_at) * 1000)::bigint ORDER BY i.place),
        array_agg(o.awaits_outcome IS NOT NULL ORDER BY i.place)
    INTO accepted_ms, is_live
    FROM unnest(in_channel, in_oplog) WITH ORDINALITY AS i (channel_id, oplog_id, place)
    -- LIMIT keeps the planner from joining the other way round: a plan for an empty table would read all oplogs.
    LEFT JOIN LATERAL (
        SELECT s.created_at, s.awaits_outcome FROM oplog s
        WHERE s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id AND s.recalls IS NULL
            AND s.created_at > now() - interval '33 days' AND s.created_at < now() + interval '2 days'
        LIMIT 1
    ) AS o ON true;
    PERFORM lock_statistics();
    PERFORM name_statistics_targets(
        in_channels, in_delivery_channel, in_delivery_device, in_delivery_handed_out_ms, in_user);
    PERFORM fold_statistics_oplogs(
        in_channel, in_oplog, in_noted_ms, accepted_ms, is_live, in_handed_out_ms, in_confirmed_ms);
    PERFORM fold_statistics_deliveries(
        in_delivery_channel, in_delivery_oplog, in_delivery_device, in_delivery_handed_out_ms, in_user,
        in_operating_system, in_app_version, in_attempts, in_skipped_ms, in_skip_reason, in_delivery_confirmed_ms,
        in_dead_ms, in_dead_user);

    INSERT INTO statistics_discarded AS t (channel_id, device_id, upto, after, discarded_at)
    SELECT i.channel_id, i.device_id, i.upto, i.after, to_timestamp(i.at_ms::float8 / 1000)
    FROM unnest(in_discarded_channel, in_discarded_device, in_discarded_upto, in_discarded_after, in_discarded_ms)
        AS i (channel_id, device_id, upto, after, at_ms)
    ORDER BY i.channel_id, i.device_id COLLATE "C", i.upto
    ON CONFLICT (channel_id, device_id, upto) DO UPDATE SET
        after = least(t.after, excluded.after), discarded_at = least(t.discarded_at, excluded.discarded_at)
    WHERE (t.after, t.discarded_at) IS DISTINCT FROM (excluded.after, excluded.discarded_at);

    INSERT INTO statistics_connected AS t (instance_id, minute, gateway_id, devices)
    SELECT i.instance_id, date_trunc('minute', to_timestamp(i.at_ms::float8 / 1000)), i.gateway_id,
        least(i.devices, 2147483647)::integer
    FROM unnest(in_connected_instance, in_connected_gateway, in_connected_ms, in_connected_devices)
        AS i (instance_id, gateway_id, at_ms, devices)
    ORDER BY i.instance_id COLLATE "C", i.at_ms, i.gateway_id COLLATE "C"
    ON CONFLICT (instance_id, minute, gateway_id) DO UPDATE SET devices = excluded.devices
    WHERE t.devices < excluded.devices;
END $$;

GRANT EXECUTE ON FUNCTION fold_statistics TO mss_statistics;
