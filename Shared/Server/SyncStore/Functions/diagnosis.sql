-- Tasks that request the logs of devices. The codes of states are in m0013_diagnosis.

-- ---- requests of operators ------------------------------------------------------------------------------------------

-- A task as audit records show it.
CREATE OR REPLACE FUNCTION diagnosis_members(in_row diagnosis_task) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'deviceId', in_row.device_id, 'description', in_row.description, 'from', in_row.from_ms, 'to', in_row.to_ms,
        'level', in_row.level, 'network', in_row.network, 'limitBytes', in_row.limit_bytes, 'run', in_row.run)
$$;

-- Creates a task; false: the instance has `in_most` tasks already.
CREATE OR REPLACE FUNCTION create_diagnosis_task(
    in_actor text[], in_task text, in_instance text, in_device text, in_description text, in_from_ms bigint,
    in_to_ms bigint, in_level text, in_network text, in_limit_bytes integer, in_most integer
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    made diagnosis_task;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('mss diagnosis'), hashtext(in_instance));
    IF (SELECT count(*) FROM diagnosis_task t WHERE t.instance_id = in_instance) >= in_most THEN RETURN false; END IF;
    INSERT INTO diagnosis_task (
        task_id, instance_id, device_id, description, operator, from_ms, to_ms, level, network, limit_bytes)
    VALUES (
        in_task, in_instance, in_device, in_description, in_actor[1], in_from_ms, in_to_ms, in_level, in_network,
        in_limit_bytes)
    RETURNING * INTO STRICT made;
    PERFORM record_operation(
        in_actor, 80::smallint /* createDiagnosis */, in_instance, in_task, NULL, diagnosis_members(made));
    RETURN true;
END $$;

-- Restarts a task under the next run; no row: there is no such task.
CREATE OR REPLACE FUNCTION restart_diagnosis_task(in_actor text[], in_instance text, in_task text)
RETURNS SETOF diagnosis_task LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held diagnosis_task;
BEGIN
    UPDATE diagnosis_task t SET
        run = t.run + 1, state = 1 /* asked */, refusal = '', file = '', file_bytes = 0, file_sha256 = '',
        part_count = 0, taken_parts = 0, taken_bytes = 0, changed_at = clock_timestamp()
    WHERE t.instance_id = in_instance AND t.task_id = in_task RETURNING t.* INTO held;
    IF NOT FOUND THEN RETURN; END IF;
    DELETE FROM diagnosis_part p WHERE p.task_id = in_task;
    PERFORM record_operation(
        in_actor, 81::smallint /* restartDiagnosis */, in_instance, in_task, NULL, diagnosis_members(held));
    RETURN NEXT held;
END $$;

-- Deletes a task with its log; false: there is no such task.
CREATE OR REPLACE FUNCTION delete_diagnosis_task(in_actor text[], in_instance text, in_task text)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held diagnosis_task;
BEGIN
    DELETE FROM diagnosis_task t WHERE t.instance_id = in_instance AND t.task_id = in_task RETURNING t.* INTO held;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM record_operation(
        in_actor, 82::smallint /* deleteDiagnosis */, in_instance, in_task, diagnosis_members(held), NULL);
    RETURN true;
END $$;

-- Records that an operator downloads a complete log, because it can contain users' actions. False: there is no complete
-- log.
CREATE OR REPLACE FUNCTION note_diagnosis_download(in_actor text[], in_instance text, in_task text)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
BEGIN
    PERFORM FROM diagnosis_task t WHERE t.instance_id = in_instance AND t.task_id = in_task AND t.state = 3 /* whole */;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM record_operation(in_actor, 83::smallint /* downloadDiagnosis */, in_instance, in_task, NULL, NULL);
    RETURN true;
END $$;

-- Tasks, the newest first; an empty text: all tasks of the instance.
CREATE OR REPLACE FUNCTION list_diagnosis_tasks(in_instance text, in_task text)
RETURNS SETOF diagnosis_task LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    SELECT t.* FROM diagnosis_task t
    WHERE t.instance_id = in_instance AND (in_task = '' OR t.task_id = in_task) ORDER BY t.number DESC
$$;

-- One part of a complete log, as long as the log has this SHA-256.
CREATE OR REPLACE FUNCTION read_diagnosis_part(in_instance text, in_task text, in_file_sha256 text, in_number integer)
RETURNS TABLE (part bytea) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    SELECT p.content FROM diagnosis_task t JOIN diagnosis_part p ON p.task_id = t.task_id
    WHERE t.instance_id = in_instance AND t.task_id = in_task AND t.state = 3 /* whole */
        AND t.file_sha256 = in_file_sha256 AND p.number = in_number
$$;

-- ---- data from devices ----------------------------------------------------------------------------------------------

-- Ends the present run without a log, and returns the answer for the device.
CREATE OR REPLACE FUNCTION end_diagnosis_run(in_task text, in_code integer, in_refusal text)
RETURNS TABLE (code integer, message text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM diagnosis_part p WHERE p.task_id = in_task;
    UPDATE diagnosis_task t SET
        state = 4 /* refused */, refusal = in_refusal, taken_parts = 0, taken_bytes = 0, changed_at = clock_timestamp()
    WHERE t.task_id = in_task;
    RETURN QUERY SELECT in_code, in_refusal;
END $$;

-- Stores one part. A repeated part is accepted again; a file of another SHA-256 starts the run over. With the last part
-- the whole log is checked. Every code except 200 ends the run on the device.
CREATE OR REPLACE FUNCTION keep_diagnosis_part(
    in_instance text, in_device text, in_user text, in_task text, in_run integer, in_file text, in_file_bytes integer,
    in_file_sha256 text, in_number integer, in_total integer, in_sha256 text, in_content bytea
) RETURNS TABLE (code integer, message text) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held diagnosis_task;
    whole bytea;
BEGIN
    SELECT * INTO held FROM diagnosis_task t
    WHERE t.task_id = in_task AND t.instance_id = in_instance AND t.device_id = in_device FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 404, 'there is no such task';
        RETURN;
    END IF;
    IF held.run <> in_run THEN
        RETURN QUERY SELECT 409, 'another run of the task has begun';
        RETURN;
    END IF;
    IF held.state = 4 /* refused */ THEN
        RETURN QUERY SELECT 409, held.refusal;
        RETURN;
    END IF;
    IF in_file_bytes > held.limit_bytes THEN
        RETURN QUERY SELECT * FROM end_diagnosis_run(in_task, 413, 'too-large');
        RETURN;
    END IF;
    IF held.file_sha256 <> in_file_sha256 THEN
        DELETE FROM diagnosis_part p WHERE p.task_id = in_task;
        held.taken_parts := 0;
        held.taken_bytes := 0;
    ELSIF (held.file_bytes, held.part_count) IS DISTINCT FROM (in_file_bytes, in_total) THEN
        RETURN QUERY SELECT * FROM end_diagnosis_run(in_task, 422, 'damaged');
        RETURN;
    END IF;
    IF encode(sha256(in_content), 'hex') <> in_sha256 THEN
        RETURN QUERY SELECT * FROM end_diagnosis_run(in_task, 422, 'damaged');
        RETURN;
    END IF;
    INSERT INTO diagnosis_part VALUES (in_task, in_number, in_sha256, in_content) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM FROM diagnosis_part p WHERE p.task_id = in_task AND p.number = in_number AND p.sha256 = in_sha256;
        IF FOUND THEN
            RETURN QUERY SELECT 200, '';
        ELSE
            RETURN QUERY SELECT * FROM end_diagnosis_run(in_task, 422, 'damaged');
        END IF;
        RETURN;
    END IF;
    held.taken_parts := held.taken_parts + 1;
    held.taken_bytes := held.taken_bytes + octet_length(in_content);
    held.state := 2 /* coming */;
    IF held.taken_parts = in_total THEN
        SELECT string_agg(p.content, ''::bytea ORDER BY p.number) INTO whole FROM diagnosis_part p
        WHERE p.task_id = in_task;
        held.state := 3 /* whole */;
    END IF;
    IF held.taken_bytes > in_file_bytes
        OR held.state = 3 /* whole */
            AND (held.taken_bytes <> in_file_bytes OR encode(sha256(whole), 'hex') <> in_file_sha256)
    THEN
        RETURN QUERY SELECT * FROM end_diagnosis_run(in_task, 422, 'damaged');
        RETURN;
    END IF;
    UPDATE diagnosis_task t SET
        user_id = in_user, state = held.state, file = in_file, file_bytes = in_file_bytes,
        file_sha256 = in_file_sha256, part_count = in_total, taken_parts = held.taken_parts,
        taken_bytes = held.taken_bytes, changed_at = clock_timestamp()
    WHERE t.task_id = in_task;
    RETURN QUERY SELECT 200, '';
END $$;

-- Records that a device sends nothing, and why. A repeat, a deleted task or another run changes nothing.
CREATE OR REPLACE FUNCTION refuse_diagnosis_task(
    in_instance text, in_device text, in_user text, in_task text, in_run integer, in_refusal text
) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
BEGIN
    UPDATE diagnosis_task t SET user_id = in_user
    WHERE t.task_id = in_task AND t.instance_id = in_instance AND t.device_id = in_device AND t.run = in_run
        AND t.state IN (1 /* asked */, 2 /* coming */);
    IF FOUND THEN PERFORM end_diagnosis_run(in_task, 200, in_refusal); END IF;
END $$;

-- Deletes tasks that have not changed for `in_age`, at most `in_most`; returns how many.
CREATE OR REPLACE FUNCTION forget_diagnosis_tasks(
    in_age interval, in_most integer
) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH forgotten AS (
        DELETE FROM diagnosis_task t WHERE t.task_id IN (
            SELECT o.task_id FROM diagnosis_task o WHERE o.changed_at < clock_timestamp() - in_age
            ORDER BY o.changed_at LIMIT in_most FOR UPDATE SKIP LOCKED)
        RETURNING 1
    )
    SELECT count(*) INTO gone FROM forgotten;
    RETURN gone;
END $$;

GRANT EXECUTE ON FUNCTION create_diagnosis_task, restart_diagnosis_task, delete_diagnosis_task,
    note_diagnosis_download, list_diagnosis_tasks, read_diagnosis_part TO mss_console;
GRANT EXECUTE ON FUNCTION keep_diagnosis_part, refuse_diagnosis_task, forget_diagnosis_tasks TO mss_relay;
