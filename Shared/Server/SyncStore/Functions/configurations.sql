-- Changes of configurations. The answers are those of the functions in instances.sql.

-- A configuration as audit records show it.
CREATE OR REPLACE FUNCTION configuration_members(in_row sync_configuration) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'instanceId', in_row.instance_id, 'bizType', in_row.biz_type, 'description', in_row.description,
        'scope', CASE WHEN in_row.kind > 1 /* global */ THEN 'global' ELSE 'appointed' END,
        'target', CASE WHEN in_row.kind IN (0 /* user */, 2 /* globalUser */) THEN 'user' ELSE 'device' END,
        'multiDevice', in_row.is_multi_device, 'persistent', in_row.is_persistent,
        'repush', CASE WHEN in_row.threshold = 0 THEN to_jsonb('all'::text) ELSE to_jsonb(in_row.threshold) END,
        'checkSession', in_row.checks_session,
        'verdictLifetimeSeconds', trim_scale(in_row.verdict_lifetime_ms::numeric / 1000),
        'immediate', in_row.is_immediate, 'online', in_row.is_online, 'revision', in_row.revision)
        || CASE WHEN concat(in_row.filter, in_row.attributes, in_row.parameters) = '' THEN '{}'::jsonb
            ELSE jsonb_build_object(
                'filter', in_row.filter, 'attributes', in_row.attributes, 'parameters', in_row.parameters) END
$$;

-- The same for a configuration. Its target (user or device) cannot be changed. Its push scope can: stored oplogs stay
-- in the channel of the scope that they were pushed with (C4).
CREATE OR REPLACE FUNCTION change_configuration(in_actor text[], in_way text, in_row sync_configuration)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    known bigint := in_row.revision;
    held sync_configuration;
    rest sync_configuration;
    action integer := 2; -- modifyConfiguration
BEGIN
    IF in_way <> 'modify' AND EXISTS (SELECT FROM instance n WHERE n.instance_id = in_row.instance_id) THEN
        in_row.revision := first_revision();
        in_row.data_since := clock_timestamp();
        in_row.is_filtered := in_row.filter <> '';
        INSERT INTO sync_configuration VALUES (in_row.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN QUERY SELECT * FROM finish_change(
                in_actor, 1 /* createConfiguration */, in_row.instance_id, in_row.biz_type, NULL,
                configuration_members(in_row));
            RETURN;
        END IF;
    END IF;
    SELECT * INTO held FROM sync_configuration f
    WHERE f.instance_id = in_row.instance_id AND f.biz_type = in_row.biz_type FOR NO KEY UPDATE;
    IF NOT FOUND OR in_way = 'create' OR held.kind % 2 /* the target */ <> in_row.kind % 2 THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
        RETURN;
    END IF;
    in_row.revision := held.revision;
    in_row.data_since := held.data_since;
    in_row.is_filtered := held.is_filtered OR in_row.filter <> '';
    IF in_row IS NOT DISTINCT FROM held AND (in_way = 'put' OR known IN (held.revision, held.revision - 1)) THEN
        UPDATE sync_configuration f SET revision = f.revision
        WHERE f.instance_id = held.instance_id AND f.biz_type = held.biz_type;
        RETURN QUERY SELECT c.version, false, false FROM control_version c;
        RETURN;
    END IF;
    IF in_way = 'modify' AND known <> held.revision THEN
        RETURN QUERY SELECT NULL::bigint, false, true;
        RETURN;
    END IF;
    rest := in_row;
    rest.is_online := held.is_online;
    IF rest IS NOT DISTINCT FROM held THEN
        action := CASE WHEN in_row.is_online THEN 4 /* publishConfiguration */ ELSE 5 /* disableConfiguration */ END;
    END IF;
    UPDATE sync_configuration f SET description = in_row.description, kind = in_row.kind,
        is_multi_device = in_row.is_multi_device, is_persistent = in_row.is_persistent,
        threshold = in_row.threshold, checks_session = in_row.checks_session, is_online = in_row.is_online,
        is_immediate = in_row.is_immediate, verdict_lifetime_ms = in_row.verdict_lifetime_ms, filter = in_row.filter,
        attributes = in_row.attributes, parameters = in_row.parameters, is_filtered = in_row.is_filtered,
        revision = held.revision + 1
    WHERE f.instance_id = held.instance_id AND f.biz_type = held.biz_type RETURNING f.* INTO STRICT in_row;
    RETURN QUERY SELECT * FROM finish_change(
        in_actor, action, held.instance_id, held.biz_type, configuration_members(held), configuration_members(in_row));
END $$;

-- Sets a configuration online or offline, at any revision.
CREATE OR REPLACE FUNCTION switch_configuration(
    in_actor text[], in_instance text, in_biz_type text, in_is_online boolean
) RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    switched sync_configuration;
BEGIN
    SELECT * INTO switched FROM sync_configuration f
    WHERE f.instance_id = in_instance AND f.biz_type = in_biz_type FOR NO KEY UPDATE;
    switched.is_online := in_is_online;
    RETURN QUERY SELECT * FROM change_configuration(in_actor, 'modify', switched);
END $$;

-- Deletes a configuration that is offline. Its oplogs and their `thirdMsgId`s are ignored from then on, and retention
-- frees their space. The ids of its channels continue to rise if it is created again (D17).
CREATE OR REPLACE FUNCTION delete_configuration(in_actor text[], in_instance text, in_biz_type text)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    gone sync_configuration;
BEGIN
    DELETE FROM sync_configuration f
    WHERE f.instance_id = in_instance AND f.biz_type = in_biz_type AND NOT f.is_online RETURNING f.* INTO gone;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
    ELSE
        RETURN QUERY SELECT * FROM finish_change(
            in_actor, 3 /* deleteConfiguration */, in_instance, in_biz_type, configuration_members(gone), NULL);
    END IF;
END $$;

GRANT EXECUTE ON FUNCTION change_configuration, switch_configuration, delete_configuration TO mss_writer;
