-- Opens the filtered channels of a session.

-- The filtered channels of a session that was just registered, with their state, as far as they are in this store. The
-- session's row is locked until the commit: of two registrations, the later one sees the effect of the earlier one. No
-- row: another connection, or a later command of this one, has the device now, or the store has no channel of the
-- session. A missing channel is created, so that its filter applies from its first oplog on. After a change of the push
-- scope, the channel of the other scope is returned too, if it exists.
CREATE OR REPLACE FUNCTION open_subscriptions(
    in_instance text, in_device text, in_store text, in_user text, in_connection_epoch bigint,
    in_registration_number bigint, in_biz_types text[]
) RETURNS TABLE (
    channel_id bigint, biz_type text, kind smallint, head bigint, filter text, attributes text, parameters text,
    is_per_store boolean, is_owned boolean, is_known boolean, stored bigint, oldest bigint, data_since timestamptz
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    rule record; -- a configuration, with the kind of one of its channels
    wanted text;
BEGIN
    PERFORM FROM device_session s
    WHERE s.instance_id = in_instance AND s.device_id = in_device AND s.connection_epoch = in_connection_epoch
        AND s.registration_number = in_registration_number
    FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    -- In the order in which appends lock channels.
    FOR rule IN
        SELECT f.*, k.kind AS of_kind FROM sync_configuration f
        -- The kind of the other push scope with the same target.
        CROSS JOIN LATERAL (VALUES (f.kind), (((f.kind + 2) % 4)::smallint)) AS k (kind)
        WHERE f.instance_id = in_instance AND f.biz_type = ANY (in_biz_types) AND f.is_filtered
            AND (in_user <> '' OR f.kind IN (1 /* device */, 3 /* globalDevice */))
        ORDER BY k.kind, f.biz_type
    LOOP
        wanted := CASE rule.of_kind WHEN 0 /* user */ THEN in_user WHEN 1 /* device */ THEN in_device ELSE '' END;
        CONTINUE WHEN NOT is_of_store(in_instance, wanted);
        IF rule.of_kind = rule.kind AND NOT EXISTS (
            SELECT FROM channel c WHERE c.instance_id = in_instance AND c.kind = rule.kind AND c.target = wanted
                AND c.biz_type = rule.biz_type)
        THEN
            INSERT INTO channel (instance_id, kind, target, biz_type)
            VALUES (in_instance, rule.kind, wanted, rule.biz_type) ON CONFLICT DO NOTHING;
        END IF;
        RETURN QUERY
        SELECT c.channel_id, c.biz_type, c.kind, c.head, rule.filter, rule.attributes, rule.parameters,
            p.is_per_store,
            rule.of_kind <> 0 /* user */ OR rule.is_multi_device OR EXISTS (
                SELECT FROM owner w
                WHERE w.instance_id = in_instance AND w.user_id = in_user AND w.device_id = in_device),
            s.upto IS NOT NULL, coalesce(s.upto, 0),
            (SELECT o.oplog_id FROM oplog o WHERE o.channel_id = c.channel_id ORDER BY o.oplog_id LIMIT 1),
            rule.data_since
        FROM channel c
        CROSS JOIN LATERAL (
            SELECT rule.of_kind > 1 /* global */ OR rule.of_kind = 0 /* user */ AND rule.is_multi_device AS is_per_store
        ) p
        CROSS JOIN LATERAL (
            SELECT max(m.oplog_id) AS upto FROM sync_point m
            WHERE m.channel_id = c.channel_id
                AND (NOT p.is_per_store OR m.device_id = in_device AND m.store_id = in_store
                    AND m.user_id = CASE rule.of_kind WHEN 2 /* globalUser */ THEN in_user ELSE '' END)
        ) s
        WHERE c.instance_id = in_instance AND c.kind = rule.of_kind AND c.target = wanted
            AND c.biz_type = rule.biz_type;
    END LOOP;
END $$;

GRANT EXECUTE ON FUNCTION open_subscriptions TO mss_writer;
