-- Starts, widens and ends roll-outs. The codes of states are in m0009_rollouts, those of actions in m0004_records.

-- A roll-out as audit records show it: without its payload.
CREATE OR REPLACE FUNCTION rollout_members(in_row rollout) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'thirdMsgId', in_row.third_message_id, 'stage', cardinality(in_row.oplog_ids),
        'state', (ARRAY['running', 'paused', 'stopped', 'completed'])[in_row.state],
        'percent', (SELECT jsonb_agg(trim_scale(s / 100.0)) FROM unnest(in_row.stages) s),
        'intervalSeconds', extract(epoch FROM in_row.stage_interval)::bigint,
        'osType', (ARRAY['iOS', 'Android'])[nullif(in_row.operating_system, 0)],
        'appMinVersion', nullif(in_row.minimum_version, ''), 'appMaxVersion', nullif(in_row.maximum_version, ''),
        'validTimeEnd', nullif(in_row.valid_until_ms, 0))
$$;

-- Replaces a locked roll-out by its changed state, and records the change.
CREATE OR REPLACE FUNCTION keep_rollout(
    in_actor text[], in_action integer, in_held rollout, in_row rollout
) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE rollout r SET payload = CASE WHEN in_row.state IN (1 /* running */, 2 /* paused */) THEN in_row.payload END,
        oplog_ids = in_row.oplog_ids, state = in_row.state, due_at = in_row.due_at, wait_left = in_row.wait_left,
        changed_by = in_actor[1], changed_at = clock_timestamp()
    WHERE r.instance_id = in_held.instance_id AND r.biz_type = in_held.biz_type
        AND r.third_message_id = in_held.third_message_id;
    IF in_action = 60 /* startRollout */ THEN
        -- Under the id of the first stage: the recall of that stage erases this content too.
        PERFORM record_push(
            in_actor, in_action::smallint, in_held.instance_id, in_held.biz_type, '', in_held.stage_ids[1],
            in_held.payload, in_held.is_binary, rollout_members(in_row));
    ELSE
        PERFORM record_operation(
            in_actor, in_action::smallint, in_held.instance_id, in_held.biz_type, rollout_members(in_held),
            rollout_members(in_row));
    END IF;
END $$;

-- Makes the next stage of a locked roll-out. The answers are the raw values of RolloutOutcome.
CREATE OR REPLACE FUNCTION make_rollout_stage(in_actor text[], in_action integer, in_held rollout) RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    stage integer := cardinality(in_held.oplog_ids) + 1;
    share_before integer := CASE WHEN stage = 1 THEN 0 ELSE in_held.stages[stage - 1] END;
    made record;
    moved rollout := in_held;
BEGIN
    IF in_held.valid_until_ms <> 0 AND to_timestamp(in_held.valid_until_ms / 1000.0) <= clock_timestamp() THEN
        RETURN 'expired';
    END IF;
    SELECT * INTO made FROM append_oplogs(
        ARRAY[in_held.instance_id], ARRAY[in_held.kind], ARRAY[in_held.biz_type], ARRAY[1], ARRAY[''], ARRAY[1],
        ARRAY[1], ARRAY[1], ARRAY[in_held.stage_ids[stage]], ARRAY[in_held.stage_hashes[stage]], ARRAY[in_held.payload],
        ARRAY[in_held.is_binary], ARRAY[in_held.operating_system], ARRAY[in_held.minimum_version],
        ARRAY[in_held.maximum_version], ARRAY[((in_held.share_start + share_before) % 10000)::smallint],
        ARRAY[(in_held.stages[stage] - share_before)::smallint], ARRAY[in_held.valid_until_ms], ARRAY[''],
        ARRAY['']);
    IF NOT FOUND THEN RETURN 'offline'; END IF;
    -- A stage of this roll-out cannot be the duplicate: the row would list it.
    IF made.is_duplicate THEN RETURN 'taken'; END IF;
    moved.oplog_ids := in_held.oplog_ids || made.id;
    IF stage = cardinality(in_held.stages) THEN
        moved.state := 4 /* completed */;
        moved.due_at := NULL;
    ELSE
        moved.due_at := clock_timestamp() + in_held.stage_interval;
    END IF;
    PERFORM keep_rollout(in_actor, in_action, in_held, moved);
    RETURN 'done';
END $$;

-- Starts a roll-out with its first stage; one that was started under the id stays as it is. Like every function here
-- that an operator's connection calls, it accesses only the connection's own instance.
CREATE OR REPLACE FUNCTION start_rollout(
    in_actor text[], in_instance text, in_biz_type text, in_third_message_id text, in_payload bytea,
    in_is_binary boolean, in_operating_system smallint, in_minimum_version text, in_maximum_version text,
    in_valid_until_ms bigint, in_share_start smallint, in_stages bigint[], in_stage_ids text[],
    in_stage_hashes bigint[], in_interval_s bigint
) RETURNS text LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held rollout;
    outcome text;
BEGIN
    -- When two calls start it at once, one waits here for the other's commit and finds its effect.
    INSERT INTO rollout (
        instance_id, biz_type, third_message_id, kind, payload, is_binary, operating_system, minimum_version,
        maximum_version, valid_until_ms, share_start, stages, stage_ids, stage_hashes, stage_interval, started_by,
        changed_by)
    SELECT f.instance_id, f.biz_type, in_third_message_id, f.kind, in_payload, in_is_binary, in_operating_system,
        in_minimum_version, in_maximum_version, in_valid_until_ms, in_share_start, in_stages::integer[], in_stage_ids,
        in_stage_hashes, make_interval(secs => nullif(in_interval_s, 0)), in_actor[1], in_actor[1]
    FROM sync_configuration f
    WHERE f.instance_id = in_instance AND f.biz_type = in_biz_type AND f.kind > 1 /* global */
        AND in_instance = current_setting('mss.instance', true)
    ON CONFLICT DO NOTHING RETURNING * INTO held;
    IF NOT FOUND THEN
        -- Makes the answer to a repeat as durable as the first one.
        UPDATE rollout r SET changed_by = r.changed_by
        WHERE r.instance_id = in_instance AND r.biz_type = in_biz_type
            AND r.third_message_id = in_third_message_id AND in_instance = current_setting('mss.instance', true);
        RETURN CASE WHEN FOUND THEN 'unchanged' ELSE 'offline' END;
    END IF;
    outcome := make_rollout_stage(in_actor, 60 /* startRollout */, held);
    IF outcome <> 'done' THEN
        DELETE FROM rollout r WHERE r.instance_id = held.instance_id AND r.biz_type = held.biz_type
            AND r.third_message_id = held.third_message_id;
    END IF;
    RETURN outcome;
END $$;

-- Makes the stage of this number (`widen`; a stage that was made is not made again), or pauses or resumes the roll-out.
-- Stages that were made continue to reach their devices during a pause.
CREATE OR REPLACE FUNCTION change_rollout(
    in_actor text[], in_way text, in_instance text, in_biz_type text, in_third_message_id text, in_stage integer
) RETURNS text LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held rollout;
    moved rollout;
BEGIN
    SELECT * INTO held FROM rollout r
    WHERE r.instance_id = in_instance AND r.biz_type = in_biz_type AND r.third_message_id = in_third_message_id
        AND in_instance = current_setting('mss.instance', true)
    FOR UPDATE;
    IF NOT FOUND THEN RETURN 'missing'; END IF;
    IF in_way = 'widen' AND in_stage <= cardinality(held.oplog_ids)
        OR in_way = 'pause' AND held.state = 2 /* paused */ OR in_way = 'resume' AND held.state = 1 /* running */
    THEN
        -- Makes the answer to a repeat as durable as the first one.
        UPDATE rollout r SET changed_by = r.changed_by
        WHERE r.instance_id = in_instance AND r.biz_type = in_biz_type AND r.third_message_id = in_third_message_id;
        RETURN 'unchanged';
    END IF;
    IF held.state = 3 /* stopped */ THEN RETURN 'stopped'; END IF;
    IF held.state = 4 /* completed */ THEN RETURN 'completed'; END IF;
    IF in_way = 'widen' THEN
        IF held.state = 2 /* paused */ THEN RETURN 'paused'; END IF;
        IF in_stage > cardinality(held.oplog_ids) + 1 THEN RETURN 'ahead'; END IF;
        RETURN make_rollout_stage(in_actor, 61 /* widenRollout */, held);
    END IF;
    moved := held;
    IF in_way = 'pause' THEN
        moved.state := 2 /* paused */;
        moved.wait_left := greatest(held.due_at - clock_timestamp(), interval '0');
        IF held.due_at IS NULL THEN moved.wait_left := NULL; END IF;
        moved.due_at := NULL;
    ELSE
        moved.state := 1 /* running */;
        moved.due_at := clock_timestamp() + held.wait_left;
        moved.wait_left := NULL;
    END IF;
    PERFORM keep_rollout(
        in_actor, CASE WHEN in_way = 'pause' THEN 62 /* pauseRollout */ ELSE 63 /* resumeRollout */ END, held, moved);
    RETURN 'done';
END $$;

-- Ends a roll-out for good, also a complete one, and recalls every stage: devices that have not stored it never receive
-- it. The first row of the answer has no recall. A repeat returns the same recalls.
CREATE OR REPLACE FUNCTION stop_rollout(in_actor text[], in_instance text, in_biz_type text, in_third_message_id text)
RETURNS TABLE (
    outcome text, channel bigint, id bigint, tombstone bigint, head_before bigint, operating_system smallint,
    minimum_version text, maximum_version text, share_start smallint, share_size smallint, valid_until_ms bigint,
    created_at_ms bigint
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    held rollout;
    moved rollout;
    answer text := 'done';
BEGIN
    SELECT * INTO held FROM rollout r
    WHERE r.instance_id = in_instance AND r.biz_type = in_biz_type AND r.third_message_id = in_third_message_id
        AND in_instance = current_setting('mss.instance', true)
    FOR UPDATE;
    IF NOT FOUND THEN
        answer := 'missing';
    ELSIF held.state = 3 /* stopped */ THEN
        answer := 'unchanged';
    END IF;
    RETURN QUERY SELECT answer, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::smallint, NULL, NULL,
        NULL::smallint, NULL::smallint, NULL::bigint, NULL::bigint;
    FOR stage IN 1..coalesce(cardinality(held.oplog_ids), 0) LOOP
        RETURN QUERY SELECT answer, m.* FROM recall_oplog(
            held.instance_id, held.kind, '', held.biz_type, held.stage_ids[stage], held.stage_hashes[stage], NULL) m;
    END LOOP;
    IF answer = 'done' THEN
        moved := held;
        moved.state := 3 /* stopped */;
        moved.due_at := NULL;
        moved.wait_left := NULL;
        PERFORM keep_rollout(in_actor, 64 /* stopRollout */, held, moved);
    END IF;
END $$;

-- Makes one stage whose time has come, of any instance whose global channels are in this store. Every writer calls it
-- once a second, and none waits for another. A roll-out whose validity has ended stops. One whose stage id belongs to
-- another push pauses. One whose configuration is offline or no longer global waits. False: nothing is due.
CREATE OR REPLACE FUNCTION widen_due_rollout() RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held rollout;
    moved rollout;
    outcome text;
BEGIN
    SELECT r.* INTO held FROM rollout r
    JOIN sync_configuration f ON f.instance_id = r.instance_id AND f.biz_type = r.biz_type AND f.is_online
        AND f.kind = r.kind
    JOIN instance n ON n.instance_id = r.instance_id AND n.is_enabled
    WHERE r.due_at <= clock_timestamp() AND is_of_store(r.instance_id, '') ORDER BY r.due_at LIMIT 1
    FOR UPDATE OF r SKIP LOCKED;
    IF NOT FOUND THEN RETURN false; END IF;
    outcome := make_rollout_stage(ARRAY['schedule', ''], 61 /* widenRollout */, held);
    IF outcome IN ('expired', 'taken') THEN
        moved := held;
        moved.state := CASE WHEN outcome = 'expired' THEN 3 /* stopped */ ELSE 2 /* paused */ END;
        moved.due_at := NULL;
        moved.wait_left := CASE WHEN outcome = 'taken' THEN interval '0' END;
        PERFORM keep_rollout(
            ARRAY['schedule', ''],
            CASE WHEN outcome = 'expired' THEN 64 /* stopRollout */ ELSE 62 /* pauseRollout */ END, held, moved);
    END IF;
    RETURN outcome <> 'offline';
END $$;

-- Stops roll-outs whose validity has ended, and deletes those that ended longer ago than the statistics keep their
-- pushes; the audit records stay.
CREATE OR REPLACE FUNCTION forget_ended_rollouts() RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held rollout;
    moved rollout;
BEGIN
    FOR held IN
        SELECT * FROM rollout r
        WHERE r.state IN (1 /* running */, 2 /* paused */) AND r.valid_until_ms <> 0
            AND to_timestamp(r.valid_until_ms / 1000.0) <= clock_timestamp()
        ORDER BY r.instance_id, r.biz_type, r.third_message_id FOR UPDATE SKIP LOCKED
    LOOP
        moved := held;
        moved.state := 3 /* stopped */;
        moved.due_at := NULL;
        moved.wait_left := NULL;
        PERFORM keep_rollout(ARRAY['schedule', ''], 64 /* stopRollout */, held, moved);
    END LOOP;
    DELETE FROM rollout d WHERE d.ctid = ANY (ARRAY(
        SELECT r.ctid FROM rollout r
        WHERE r.state IN (3 /* stopped */, 4 /* completed */) AND (r.changed_at < clock_timestamp() - interval '35 days'
                AND r.told_stages >= cardinality(r.oplog_ids)
            -- Its oplogs are deleted by then.
            OR r.changed_at < clock_timestamp() - interval '70 days')
        ORDER BY r.instance_id, r.biz_type, r.third_message_id LIMIT 1000 FOR UPDATE SKIP LOCKED));
END $$;

GRANT EXECUTE ON FUNCTION start_rollout, change_rollout, stop_rollout TO mss_operator;
GRANT EXECUTE ON FUNCTION widen_due_rollout, forget_ended_rollouts TO mss_writer;
