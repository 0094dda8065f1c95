-- Writes, lists and erases audit records. The codes of actions are in m0004_records.

-- Encodes a text as between the quotes of a JSON string: line breaks and control characters become escapes.
CREATE OR REPLACE FUNCTION one_line(in_text text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(to_json(in_text)::text, 2, length(to_json(in_text)::text) - 2)
$$;

-- One part of the hashed bytes, after its length, so that no two lists of parts give the same bytes.
CREATE OR REPLACE FUNCTION chain_part(in_part bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int4send(octet_length(in_part)) || in_part
$$;

-- Appends an audit record. An actor has two parts: a name and a source. This is the last lock that a transaction takes,
-- so it causes no deadlock. A connection that has named an instance (mss.instance) records for that instance only.
CREATE OR REPLACE FUNCTION record_operation(
    in_actor text[], in_action smallint, in_instance text, in_subject text, in_before jsonb, in_after jsonb
) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    head record_head;
    made operation_record;
BEGIN
    IF coalesce(current_setting('mss.instance', true), '') NOT IN ('', in_instance) THEN
        RAISE EXCEPTION 'the connection is bound to another instance' USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT * INTO STRICT head FROM record_head FOR UPDATE;
    made.number := head.number + 1;
    made.recorded_at := greatest(clock_timestamp(), head.recorded_at);
    made.actor := one_line(in_actor[1]);
    made.source := one_line(in_actor[2]);
    made.action := in_action;
    made.instance_id := in_instance;
    made.subject := one_line(in_subject);
    made.before := in_before::text;
    made.after := in_after::text;
    made.previous_hash := head.hash;
    -- The same parts as in RecordChain.swift.
    made.hash := sha256(
        chain_part('mss-record-1') || chain_part(made.previous_hash) || chain_part(int8send(made.number))
        || chain_part(int8send((extract(epoch FROM made.recorded_at) * 1000000)::bigint))
        || chain_part(convert_to(made.actor, 'UTF8')) || chain_part(convert_to(made.source, 'UTF8'))
        || chain_part(int2send(made.action)) || chain_part(convert_to(made.instance_id, 'UTF8'))
        || chain_part(convert_to(made.subject, 'UTF8'))
        || chain_part(convert_to(coalesce(made.before, ''), 'UTF8'))
        || chain_part(convert_to(coalesce(made.after, ''), 'UTF8')));
    INSERT INTO operation_record VALUES (made.*);
    UPDATE record_head SET number = made.number, recorded_at = made.recorded_at, hash = made.hash;
    RETURN made.number;
END $$;

-- Records a push that an operator is about to make, with its content.
CREATE OR REPLACE FUNCTION record_push(
    in_actor text[], in_action smallint, in_instance text, in_biz_type text, in_target text, in_third_message_id text,
    in_payload bytea, in_is_binary boolean, in_after jsonb
) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    made := record_operation(
        in_actor, in_action, in_instance, in_biz_type, NULL,
        in_after || jsonb_build_object('payloadSha256', encode(sha256(in_payload), 'hex')));
    INSERT INTO record_content (number, instance_id, biz_type, target, third_message_id, payload, is_binary)
    VALUES (made, in_instance, in_biz_type, in_target, in_third_message_id, in_payload, in_is_binary);
    RETURN made;
END $$;

-- Erases contents whose time has ended, at most `in_limit`; their records stay.
CREATE OR REPLACE FUNCTION forget_record_contents(in_days integer, in_limit integer) RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    DELETE FROM record_content d WHERE d.number = ANY (ARRAY(
        SELECT c.number FROM record_content c WHERE c.recorded_at < clock_timestamp() - make_interval(days => in_days)
        ORDER BY c.recorded_at LIMIT in_limit FOR UPDATE SKIP LOCKED))
$$;

-- Audit records that pass the filters (null: no filter) between two numbers, which are excluded. Times never fall from
-- one number to the next, so a time is also a bound for numbers. `in_recent_max`: at most this many of the newest
-- records in all; null: no limit.
--
-- The planner cannot estimate how many rows lie between two numbers, and would sometimes sort all rows that pass the
-- filters. Without sorts and bitmap scans it can only read the index of the filters, up to the limit.
CREATE OR REPLACE FUNCTION list_records(
    in_instance text, in_actor text, in_action smallint, in_from timestamptz, in_to timestamptz, in_after bigint,
    in_before bigint, in_is_newest_first boolean, in_recent_max bigint, in_limit bigint
) RETURNS SETOF operation_record LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    is_filtered boolean := num_nonnulls(in_instance, in_actor, in_action) > 0;
    query text := 'FROM operation_record WHERE ' || concat_ws(' AND ',
        CASE WHEN in_instance IS NOT NULL THEN 'instance_id = $1' END,
        CASE WHEN in_actor IS NOT NULL THEN 'actor = $2' END,
        CASE WHEN in_action IS NOT NULL THEN 'action = $3' END,
        CASE WHEN is_filtered THEN '-number < -$4 AND -number > -$5' ELSE 'number > $4 AND number < $5' END);
    newest_first text := CASE WHEN is_filtered THEN ' ORDER BY -number ASC' ELSE ' ORDER BY number DESC' END;
    oldest_first text := CASE WHEN is_filtered THEN ' ORDER BY -number DESC' ELSE ' ORDER BY number ASC' END;
    actor text := one_line(in_actor);
    beyond_all bigint := 9223372036854775807;
    lower bigint := in_after;
    upper bigint := in_before;
    found bigint;
BEGIN
    IF in_from IS NOT NULL THEN
        found := (SELECT r.number FROM operation_record r WHERE r.recorded_at >= in_from
            ORDER BY r.recorded_at, r.number LIMIT 1);
        lower := greatest(lower, coalesce(found, beyond_all) - 1);
    END IF;
    IF in_to IS NOT NULL THEN
        found := (SELECT r.number FROM operation_record r WHERE r.recorded_at >= in_to
            ORDER BY r.recorded_at, r.number LIMIT 1);
        upper := least(upper, found);
    END IF;
    IF in_recent_max IS NOT NULL THEN
        EXECUTE 'SELECT number ' || query || newest_first || ' OFFSET $6 - 1 LIMIT 1' INTO found
            USING in_instance, actor, in_action, lower, beyond_all, in_recent_max;
        lower := greatest(lower, found - 1);
    END IF;
    RETURN QUERY EXECUTE
        'SELECT * ' || query || CASE WHEN in_is_newest_first THEN newest_first ELSE oldest_first END || ' LIMIT $6'
        USING in_instance, actor, in_action, lower, upper, in_limit;
END $$;

GRANT EXECUTE ON FUNCTION record_operation TO mss_writer, mss_operator, mss_console;
GRANT EXECUTE ON FUNCTION record_push TO mss_operator;
GRANT EXECUTE ON FUNCTION forget_record_contents TO mss_writer;
GRANT EXECUTE ON FUNCTION list_records, one_line TO mss_writer, mss_console;
