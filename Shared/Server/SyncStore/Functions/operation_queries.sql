-- Queries and requests of operators about device operations, and the deletion of old ones. The codes of states are in
-- m0010_operations.

-- Operations of an instance, newest first. State 0 and empty texts: no condition.
CREATE OR REPLACE FUNCTION list_device_operations(
    in_instance text, in_state smallint, in_device text, in_user text, in_operation text, in_before bigint,
    in_most integer
) RETURNS SETOF device_operation LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    SELECT o.* FROM device_operation o
    WHERE o.instance_id = in_instance AND (in_state = 0 OR o.state = in_state)
        AND (in_device = '' OR o.device_id = in_device) AND (in_user = '' OR o.user_id = in_user)
        AND (in_operation = '' OR o.operation_id = in_operation) AND (in_before = 0 OR o.number < in_before)
    ORDER BY o.number DESC LIMIT in_most
$$;

-- The numbers of waiting, answered and dead operations of an instance.
CREATE OR REPLACE FUNCTION count_device_operations(in_instance text)
RETURNS TABLE (counted_state smallint, operations bigint) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    SELECT 1::smallint, count(*) FROM device_operation o
    WHERE o.instance_id = in_instance AND o.state = 1 /* waiting */
    UNION ALL SELECT 2::smallint, count(*) FROM device_operation o
    WHERE o.instance_id = in_instance AND o.state = 2 /* answered */
    UNION ALL SELECT 5::smallint, count(*) FROM device_operation o
    WHERE o.instance_id = in_instance AND o.state = 5 /* dead */
$$;

-- The figures of an instance's last days, the newest first.
CREATE OR REPLACE FUNCTION list_operation_days(in_instance text, in_days integer)
RETURNS SETOF device_operation_day LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    SELECT d.* FROM device_operation_day d
    WHERE d.instance_id = in_instance AND d.day > (clock_timestamp() AT TIME ZONE 'UTC')::date - in_days
    ORDER BY d.day DESC, d.component LIMIT 1000
$$;

-- Starts a dead operation again, behind all operations that were stored since at its entities; false: there is no such
-- one.
CREATE OR REPLACE FUNCTION retry_device_operation(in_actor text[], in_instance text, in_device text, in_operation text)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    held device_operation;
    last bigint;
BEGIN
    PERFORM lock_operation_lines(ARRAY[in_instance]);
    SELECT * INTO held FROM device_operation o
    WHERE o.instance_id = in_instance AND o.device_id = in_device AND o.operation_id = in_operation
        AND o.state = 5 /* dead */
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    last := nextval('device_operation_number_seq');
    INSERT INTO device_operation_turn (entity, number) SELECT unnest(held.entities), last;
    UPDATE device_operation o SET
        number = last, state = 1 /* waiting */, attempts = 0, next_at = clock_timestamp(), claimed_until = '-infinity',
        outcome = NULL, done_at = NULL, taken_at = clock_timestamp(),
        blocked_by = (
            SELECT count(*) FROM unnest(held.entities) l (entity)
            WHERE EXISTS (SELECT FROM device_operation_turn f WHERE f.entity = l.entity AND f.number < last))
    WHERE o.instance_id = held.instance_id AND o.number = held.number;
    PERFORM record_operation(
        in_actor, 70::smallint /* retryOperation */, in_instance, in_operation, NULL,
        jsonb_build_object('deviceId', in_device, 'operationId', in_operation, 'component', held.component,
            'entityKey', held.entity_key, 'operation', held.name));
    RETURN true;
END $$;

-- Deletes operations whose time has ended: a repeat of one would be new.
CREATE OR REPLACE FUNCTION forget_device_operations(in_most integer) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH ended AS (
        SELECT i.instance_id, d.number FROM instance i
        CROSS JOIN LATERAL (
            SELECT o.number FROM device_operation o
            WHERE o.instance_id = i.instance_id AND o.state > 2 /* finished */
                AND o.done_at < clock_timestamp() - i.retention - interval '1 day'
            ORDER BY o.done_at LIMIT in_most
        ) d
        LIMIT in_most
    ), forgotten AS (
        DELETE FROM device_operation o USING ended e
        WHERE o.instance_id = e.instance_id AND o.number = e.number RETURNING 1
    )
    SELECT count(*) INTO gone FROM forgotten;
    DELETE FROM device_operation_day d WHERE d.day < (clock_timestamp() AT TIME ZONE 'UTC')::date - 400;
    RETURN gone;
END $$;

GRANT EXECUTE ON FUNCTION list_device_operations, count_device_operations, list_operation_days, retry_device_operation,
    forget_device_operations TO mss_relay;
