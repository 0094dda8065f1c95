-- Finds the devices to wake (deploy/manual/WakeUp.md).

-- Records the push token of a device that connects, which is awake now. A connection that was not registered has no
-- effect, because another one has replaced it.
CREATE OR REPLACE FUNCTION tell_push_token(
    in_instance text, in_device text, in_user text, in_provider smallint, in_token text, in_gateway text,
    in_connection bigint
) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
BEGIN
    -- OFFSET 0 keeps the gateway out of the index conditions: its index would read all of its sessions.
    PERFORM FROM (
        SELECT s.gateway_id, s.connection_number FROM device_session s
        WHERE s.instance_id = in_instance AND s.device_id = in_device
        OFFSET 0) s
    WHERE s.gateway_id = in_gateway AND s.connection_number = in_connection;
    IF NOT FOUND THEN RETURN; END IF;
    IF in_token = '' THEN
        DELETE FROM push_token t WHERE t.instance_id = in_instance AND t.device_id = in_device;
        RETURN;
    END IF;
    -- The app was reinstalled and is another device now, with the same token.
    DELETE FROM push_token t
    WHERE t.token = in_token AND t.instance_id = in_instance AND t.device_id <> in_device;
    INSERT INTO push_token AS t (instance_id, device_id, user_id, provider, token)
    VALUES (in_instance, in_device, in_user, in_provider, in_token)
    ON CONFLICT (instance_id, device_id) DO UPDATE SET
        user_id = excluded.user_id, provider = excluded.provider, token = excluded.token, claimed_at = NULL,
        woken_at = NULL;
END $$;

-- Devices of channels with new oplogs in a time range that have not stored the newest of them.
CREATE OR REPLACE FUNCTION sleeping_devices(in_after timestamptz, in_upto timestamptz, in_even_connected boolean)
RETURNS TABLE (found_instance text, found_device text) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    SELECT t.instance_id, t.device_id
    FROM (
        SELECT o.channel_id, max(o.oplog_id) AS newest FROM oplog o
        WHERE o.created_at > in_after AND o.created_at <= in_upto AND o.valid_until > in_upto
            AND o.payload IS NOT NULL
        GROUP BY o.channel_id
    ) n
    JOIN channel c ON c.channel_id = n.channel_id
    JOIN sync_configuration f ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.is_online
    JOIN LATERAL (
        SELECT u.* FROM push_token u
        WHERE c.kind = 0 /* user */ AND u.instance_id = c.instance_id AND u.user_id = c.target AND u.user_id <> ''
            AND (f.is_multi_device OR EXISTS (
                SELECT FROM owner w
                WHERE w.instance_id = u.instance_id AND w.user_id = u.user_id AND w.device_id = u.device_id))
        UNION ALL
        SELECT d.* FROM push_token d
        WHERE c.kind = 1 /* device */ AND d.instance_id = c.instance_id AND d.device_id = c.target
    ) t ON true
    WHERE NOT EXISTS (
            SELECT FROM sync_point p
            WHERE p.channel_id = n.channel_id AND p.oplog_id >= n.newest
                AND (p.device_id = t.device_id OR c.kind = 1 /* device */ OR NOT f.is_multi_device))
        AND (in_even_connected OR NOT EXISTS (
            SELECT FROM device_session s
            JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
            WHERE s.instance_id = t.instance_id AND s.device_id = t.device_id))
$$;

-- Claims the devices that are to be woken now. Either an oplog is stored for them and they are not connected. Or,
-- connected or not, they have not acknowledged it within `in_patience`: the dead connection of a sleeping phone is
-- found only after minutes, and the notifier that claimed the device before may have died. A device is claimed once
-- until it connects, or until `in_repeat` has passed. The time ranges overlap, because oplogs become visible a little
-- later than their time. After an absence of all notifiers, oplogs older than `in_reach` wake no device. Devices above
-- `in_limit` are found again after `in_patience`.
CREATE OR REPLACE FUNCTION claim_wake_ups(
    in_patience interval, in_repeat interval, in_reach interval, in_limit int
) RETURNS TABLE (
    found_instance text, found_device text, found_provider smallint, found_token text
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    present timestamptz := clock_timestamp();
    overlap interval := '3 s';
    looked timestamptz;
BEGIN
    -- Only one notifier reads at a time.
    SELECT greatest(w.looked_upto, present - in_reach) INTO looked FROM wake_up_progress w FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    UPDATE wake_up_progress SET looked_upto = present;
    RETURN QUERY
        UPDATE push_token t SET claimed_at = present
        FROM (
            SELECT d.instance_id, d.device_id
            FROM (
                SELECT * FROM sleeping_devices(looked - overlap, present, false)
                UNION
                SELECT * FROM sleeping_devices(looked - in_patience - overlap, present - in_patience, true)
            ) s
            JOIN push_token d ON d.instance_id = s.found_instance AND d.device_id = s.found_device
            WHERE (d.woken_at IS NULL OR d.woken_at < present - in_repeat)
                AND (d.claimed_at IS NULL OR d.claimed_at < present - in_patience / 2)
            LIMIT in_limit
        ) due
        WHERE t.instance_id = due.instance_id AND t.device_id = due.device_id
        RETURNING t.instance_id, t.device_id, t.provider, t.token;
END $$;

-- Records that the provider has accepted wake-ups.
CREATE OR REPLACE FUNCTION note_wake_ups(in_tokens text[]) RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    UPDATE push_token SET woken_at = clock_timestamp() WHERE token = ANY (in_tokens) AND claimed_at IS NOT NULL
$$;

-- Removes tokens that the provider reports as invalid.
CREATE OR REPLACE FUNCTION forget_push_tokens(in_tokens text[]) RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    DELETE FROM push_token WHERE token = ANY (in_tokens)
$$;

GRANT EXECUTE ON FUNCTION tell_push_token TO mss_writer;
GRANT EXECUTE ON FUNCTION claim_wake_ups, note_wake_ups, forget_push_tokens TO mss_notifier;
