-- Renews leases and registers sessions (Design.md#leases-and-fencing, Design.md#single-device-ownership).

-- Renews a lease, or gives a new one when `in_epoch` is not the epoch on record. A new lease deletes the sessions of
-- the former one, which stays on record until its end: the process that had it may be alive (D17). Its answer has the
-- control version in force, because no change has waited for a gateway without a lease. It also has the snapshot from
-- which the gateway's sweeps begin: its sessions register after that snapshot.
CREATE OR REPLACE FUNCTION renew_lease(in_gateway text, in_epoch bigint, in_control_version bigint, in_sessions bigint)
RETURNS TABLE (
    held_epoch bigint, version_in_force bigint, live_gateways bigint, all_sessions bigint, present_snapshot text
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    new_epoch bigint;
    found_version bigint;
BEGIN
    -- A renewal can come after a later one.
    UPDATE gateway SET renewals = renewals + 1, control_version = greatest(control_version, in_control_version),
        sessions = in_sessions
    WHERE gateway_id = in_gateway AND epoch = in_epoch;
    IF FOUND THEN
        RETURN QUERY SELECT in_epoch, 0::bigint, count(*), sum(g.sessions)::bigint, '' FROM gateway g;
        RETURN;
    END IF;
    -- Waits for a change in progress: either the change finds this lease, or the lease gets the change's version.
    SELECT version INTO STRICT found_version FROM control_version FOR SHARE;
    new_epoch := nextval('presence_epoch');
    -- Two processes with one id may come at once: the second one waits at the INSERT for the other's commit, and
    -- replaces its lease too.
    LOOP
        INSERT INTO gateway (gateway_id, epoch, control_version, sessions)
        VALUES (in_gateway, new_epoch, in_control_version, in_sessions)
        ON CONFLICT (gateway_id) DO NOTHING;
        EXIT WHEN FOUND;
        INSERT INTO replaced_lease (gateway_id, epoch, renewals, control_version)
        SELECT g.gateway_id, g.epoch, g.renewals, g.control_version FROM gateway g WHERE g.gateway_id = in_gateway
        FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        UPDATE gateway SET epoch = new_epoch, renewals = 0, control_version = in_control_version,
            sessions = in_sessions
        WHERE gateway_id = in_gateway;
        EXIT;
    END LOOP;
    DELETE FROM device_session WHERE gateway_id = in_gateway AND gateway_epoch <> new_epoch;
    RETURN QUERY SELECT new_epoch, found_version, 0::bigint, 0::bigint, pg_current_snapshot()::text;
END $$;

-- Whether the device id belongs to the secret with this digest. The first secret that is shown becomes the id's secret.
-- An empty digest matches no id (SEC9).
CREATE OR REPLACE FUNCTION holds_device(in_instance text, in_device text, in_digest bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF in_digest = '' THEN RETURN false; END IF;
    -- When two first secrets come at once, one waits here for the other's commit and sees its row below.
    INSERT INTO device_secret (instance_id, device_id, secret_digest) VALUES (in_instance, in_device, in_digest)
    ON CONFLICT DO NOTHING;
    RETURN EXISTS (
        SELECT FROM device_secret d
        WHERE d.instance_id = in_instance AND d.device_id = in_device AND d.secret_digest = in_digest);
END $$;

-- Registers a connection (epoch 0) or registers one again. Two connections of one store are compared by the device's
-- numbers. Otherwise the order of registration decides, by a rising connection epoch: the newest wins. A command may
-- come twice and late. Among the commands of one gateway, its numbers decide: a connection is not superseded by itself
-- or by an earlier one, does not return to an earlier bind, and does not undo the foreground state and verdict of a
-- later update. Epoch 0 in the answer: a newer connection exists, the lease is not on record, or the secret is wrong,
-- and nothing changed. Ownership moves only with a valid verdict where a single-device configuration has the session
-- check on (D16): the gateway ensures this, and this function is the second check.
CREATE OR REPLACE FUNCTION register_session(
    in_gateway text, in_gateway_epoch bigint, in_instance text, in_device text, in_store text,
    in_device_connection bigint, in_user text,
    in_operating_system smallint, in_app_version text, in_slot smallint, in_is_foreground boolean,
    in_connection_number bigint, in_registration_number bigint,
    in_connection_epoch bigint, in_takes_ownership boolean, in_ownership_epoch bigint,
    in_verdict_ms bigint, in_suspended text[],
    in_binds_device boolean, in_digest bytea
) RETURNS TABLE (
    connection_epoch bigint, superseded_gateway text, has_lease boolean, owns_user boolean, ownership_epoch bigint,
    became_owner boolean, is_wrong_secret boolean)
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    new_epoch bigint;
    held device_session;
    found_owner owner;
    becomes_owner boolean := false;
    is_same_gateway boolean;
    is_newer boolean; -- by the device's numbers; null: they do not decide
    keeps_state boolean; -- a later update of the connection has come before
    lasts interval := make_interval(secs => in_verdict_ms / 1000.0);
BEGIN
    IF NOT EXISTS (SELECT FROM gateway g WHERE g.gateway_id = in_gateway AND g.epoch = in_gateway_epoch) THEN
        RETURN QUERY SELECT 0::bigint, NULL::text, false, false, 0::bigint, false, false;
        RETURN;
    END IF;
    IF in_binds_device AND NOT holds_device(in_instance, in_device, in_digest) THEN
        RETURN QUERY SELECT 0::bigint, NULL::text, true, false, 0::bigint, false, true;
        RETURN;
    END IF;
    -- When two first registrations come at once, one waits at the INSERT for the other's commit and finds its row in
    -- the next iteration.
    LOOP
        new_epoch := in_connection_epoch;
        SELECT s.* INTO held FROM device_session s
        WHERE s.instance_id = in_instance AND s.device_id = in_device FOR UPDATE;
        is_same_gateway := held.gateway_id = in_gateway AND held.gateway_epoch = in_gateway_epoch;
        is_newer := CASE WHEN held.store_id = in_store AND in_device_connection > 0 AND held.device_connection > 0
                AND in_device_connection <> held.device_connection
            THEN in_device_connection > held.device_connection END;
        IF is_newer IS NOT TRUE AND (new_epoch < held.connection_epoch AND new_epoch > 0
                OR is_same_gateway AND (in_connection_number < held.connection_number
                    OR in_registration_number < held.registration_number))
            OR NOT is_newer
        THEN
            RETURN QUERY SELECT 0::bigint, NULL::text, true, false, 0::bigint, false, false;
            RETURN;
        ELSIF new_epoch = 0 AND is_same_gateway AND held.connection_number = in_connection_number THEN
            new_epoch := held.connection_epoch;
        ELSIF new_epoch = 0 OR new_epoch < held.connection_epoch THEN
            new_epoch := nextval('presence_epoch');
        END IF;
        IF held.device_id IS NOT NULL THEN
            keeps_state := held.connection_epoch = new_epoch AND held.state_number > in_registration_number;
            UPDATE device_session s SET
                store_id = in_store, device_connection = in_device_connection,
                user_id = in_user, gateway_id = in_gateway, gateway_epoch = in_gateway_epoch,
                connection_number = in_connection_number, registration_number = in_registration_number,
                connection_epoch = new_epoch, operating_system = in_operating_system, app_version = in_app_version,
                slot = in_slot, suspended = in_suspended,
                is_foreground = CASE WHEN keeps_state THEN s.is_foreground ELSE in_is_foreground END,
                verdict_until = CASE WHEN keeps_state THEN s.verdict_until ELSE clock_timestamp() + lasts END,
                state_number = CASE WHEN keeps_state THEN s.state_number ELSE in_registration_number END,
                registered_at = CASE WHEN s.connection_epoch = new_epoch THEN s.registered_at
                    ELSE clock_timestamp() END
            WHERE s.instance_id = in_instance AND s.device_id = in_device;
            EXIT;
        END IF;
        INSERT INTO device_session (
            instance_id, device_id, store_id, device_connection, user_id, gateway_id, gateway_epoch, connection_number,
            registration_number, connection_epoch, operating_system, app_version, slot, is_foreground, verdict_until,
            state_number, suspended)
        VALUES (
            in_instance, in_device, in_store, in_device_connection, in_user, in_gateway, in_gateway_epoch,
            in_connection_number, in_registration_number, new_epoch, in_operating_system, in_app_version, in_slot,
            in_is_foreground, clock_timestamp() + lasts, in_registration_number, in_suspended)
        ON CONFLICT (instance_id, device_id) DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
    SELECT w.* INTO found_owner FROM owner w WHERE w.instance_id = in_instance AND w.user_id = in_user;
    -- No device was given an epoch above the last one that was drawn.
    IF in_user <> '' AND found_owner.device_id IS DISTINCT FROM in_device
        AND (in_takes_ownership
            OR in_ownership_epoch > coalesce(found_owner.ownership_epoch, 0)
                AND in_ownership_epoch <= (SELECT last_value FROM presence_epoch))
        AND (in_verdict_ms > 0 OR NOT EXISTS (
            SELECT FROM sync_configuration f JOIN instance n ON n.instance_id = f.instance_id
            WHERE f.instance_id = in_instance AND f.kind = 0 /* user */ AND NOT f.is_multi_device AND f.checks_session
                AND n.validator_url <> ''))
        AND NOT coalesce(is_same_gateway AND in_registration_number = held.registration_number, false)
    THEN
        INSERT INTO owner AS w (instance_id, user_id, device_id, ownership_epoch)
        VALUES (in_instance, in_user, in_device,
            CASE WHEN in_takes_ownership THEN nextval('presence_epoch') ELSE in_ownership_epoch END)
        ON CONFLICT (instance_id, user_id) DO UPDATE SET
            device_id = excluded.device_id, ownership_epoch = excluded.ownership_epoch
        WHERE w.ownership_epoch < excluded.ownership_epoch AND w.device_id <> excluded.device_id;
        becomes_owner := FOUND;
        SELECT w.* INTO found_owner FROM owner w WHERE w.instance_id = in_instance AND w.user_id = in_user;
    END IF;
    RETURN QUERY SELECT
        new_epoch, CASE WHEN held.connection_epoch < new_epoch THEN held.gateway_id END, true,
        coalesce(found_owner.device_id = in_device, false), coalesce(found_owner.ownership_epoch, 0), becomes_owner,
        false;
END $$;

-- Forgets the secret of a device id: the next device that connects with the id registers its own.
CREATE OR REPLACE FUNCTION release_device(in_actor text[], in_instance text, in_device text)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM device_secret d WHERE d.instance_id = in_instance AND d.device_id = in_device;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
    ELSE
        RETURN QUERY SELECT * FROM finish_change(in_actor, 40 /* releaseDevice */, in_instance, in_device, NULL, NULL);
    END IF;
END $$;

GRANT EXECUTE ON FUNCTION renew_lease, register_session, release_device TO mss_writer;
