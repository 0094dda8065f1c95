-- Changes of instances.
--
-- Each change of control data is made by a function that also raises the control version and writes the audit record,
-- so no change lacks them. A function answers with the version in which the change is in force and whether it changed
-- anything. The version is null when the change was refused; `is_stale`: because another change came first.

-- Completes a change: raises the control version and writes the audit record.
CREATE OR REPLACE FUNCTION finish_change(
    in_actor text[], in_action integer, in_instance text, in_subject text, in_before jsonb, in_after jsonb
) RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    next_version bigint;
BEGIN
    UPDATE control_version SET version = version + 1 RETURNING version INTO STRICT next_version;
    PERFORM record_operation(in_actor, in_action::smallint, in_instance, in_subject, in_before, in_after);
    RETURN QUERY SELECT next_version, true, false;
END $$;

-- An instance as audit records show it.
CREATE OR REPLACE FUNCTION instance_members(in_row instance) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'instanceId', in_row.instance_id, 'name', in_row.name, 'enabled', in_row.is_enabled,
        'validatorUrl', in_row.validator_url, 'relayUrl', in_row.relay_url,
        'validatorMode', CASE WHEN in_row.gateway_app_id IS NULL THEN 'http' ELSE 'mgs' END,
        'gatewayAppId', in_row.gateway_app_id, 'gatewayWorkspaceId', in_row.gateway_workspace_id,
        'validatorWrapsBody', in_row.gateway_wraps_body,
        'verdictLifetimeSeconds', trim_scale(in_row.verdict_lifetime_ms::numeric / 1000),
        'retentionDays', extract(day FROM in_row.retention)::integer, 'requireSignature', in_row.requires_signature,
        'bindDevices', in_row.binds_devices, 'latestConnectionOwns', in_row.latest_connection_owns,
        'sessionLength', in_row.session_units,
        'requestsPerSecond', in_row.requests_per_second, 'pushesPerDay', in_row.pushes_per_day,
        'revision', in_row.revision)
$$;

-- Results are pushed under a Sync ID of their own, which is created with the endpoint. An existing one stays as it is.
CREATE OR REPLACE FUNCTION make_result_configuration(
    in_actor text[], in_row instance
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF in_row.relay_url <> '' THEN
        PERFORM FROM change_configuration(in_actor, 'create', ROW(
            in_row.instance_id, 'MSS_RESULTS', 'Results of operations', 1 /* device */, false, true, 0, false, true,
            false, NULL, 1, NULL, '', '', '', false)::sync_configuration);
    END IF;
END $$;

-- Creates an instance (`create`), changes one that still has the given revision (`modify`), or does the one that
-- applies (`put`). A repeated modification finds its own effect and changes nothing.
CREATE OR REPLACE FUNCTION change_instance(in_actor text[], in_way text, in_row instance)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    known bigint := in_row.revision;
    held instance;
    rest instance;
    action integer := 21; -- modifyInstance
BEGIN
    IF in_way <> 'modify' THEN
        in_row.revision := first_revision();
        -- When two calls create at once, one waits here for the other's commit and sees its row below.
        INSERT INTO instance VALUES (in_row.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM make_result_configuration(in_actor, in_row);
            RETURN QUERY SELECT * FROM finish_change(
                in_actor, 20 /* createInstance */, in_row.instance_id, in_row.instance_id, NULL,
                instance_members(in_row));
            RETURN;
        END IF;
    END IF;
    SELECT * INTO held FROM instance n WHERE n.instance_id = in_row.instance_id FOR NO KEY UPDATE;
    IF NOT FOUND OR in_way = 'create' THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
        RETURN;
    END IF;
    in_row.revision := held.revision;
    IF in_row IS NOT DISTINCT FROM held AND (in_way = 'put' OR known IN (held.revision, held.revision - 1)) THEN
        -- Makes the answer to a repeat as durable as the first one.
        UPDATE instance n SET revision = n.revision WHERE n.instance_id = held.instance_id;
        RETURN QUERY SELECT c.version, false, false FROM control_version c;
        RETURN;
    END IF;
    IF in_way = 'modify' AND known <> held.revision THEN
        RETURN QUERY SELECT NULL::bigint, false, true;
        RETURN;
    END IF;
    -- A change of only one switch has an action of its own.
    rest := in_row;
    rest.requires_signature := held.requires_signature;
    IF rest IS NOT DISTINCT FROM held THEN
        action := CASE WHEN in_row.requires_signature THEN 24 /* enableSignature */ ELSE 25 /* disableSignature */ END;
    END IF;
    rest := in_row;
    rest.is_enabled := held.is_enabled;
    IF rest IS NOT DISTINCT FROM held THEN
        action := CASE WHEN in_row.is_enabled THEN 22 /* enableInstance */ ELSE 23 /* disableInstance */ END;
    END IF;
    UPDATE instance n SET name = in_row.name, is_enabled = in_row.is_enabled, validator_url = in_row.validator_url,
        gateway_app_id = in_row.gateway_app_id, gateway_workspace_id = in_row.gateway_workspace_id,
        gateway_wraps_body = in_row.gateway_wraps_body, verdict_lifetime_ms = in_row.verdict_lifetime_ms,
        requires_signature = in_row.requires_signature, binds_devices = in_row.binds_devices,
        latest_connection_owns = in_row.latest_connection_owns,
        session_units = in_row.session_units, requests_per_second = in_row.requests_per_second,
        pushes_per_day = in_row.pushes_per_day, retention = in_row.retention, relay_url = in_row.relay_url,
        revision = held.revision + 1
    WHERE n.instance_id = held.instance_id RETURNING n.* INTO STRICT in_row;
    PERFORM make_result_configuration(in_actor, in_row);
    RETURN QUERY SELECT * FROM finish_change(
        in_actor, action, held.instance_id, held.instance_id, instance_members(held), instance_members(in_row));
END $$;

GRANT EXECUTE ON FUNCTION change_instance TO mss_writer;
