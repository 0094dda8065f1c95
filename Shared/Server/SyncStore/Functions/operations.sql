-- The way of a device operation: stored, claimed, answered, announced, finished. The codes of states are in
-- m0010_operations.

-- Only one transaction at a time adds to or removes from the lines of an instance: an added operation sees all before
-- it, and a removed one sees all behind it. All transactions lock instances in the same order, so no deadlock is
-- possible.
CREATE OR REPLACE FUNCTION lock_operation_lines(in_instance text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    line integer;
BEGIN
    FOR line IN SELECT DISTINCT hashtext(i) FROM unnest(in_instance) i ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock(hashtext('mss operations'), line);
    END LOOP;
END $$;

-- Stores operations, in this order, in one transaction. Known ones change nothing, but the result of an operation that
-- finished more than 10 s ago is announced again, without the import: its device would not ask if it had the result.
-- `in_entities` has the entities of each operation as the text of an array, each once.
CREATE OR REPLACE FUNCTION take_device_operations(
    in_instance text[], in_device text[], in_operation text[], in_user text[], in_session bytea[], in_component text[],
    in_key text[], in_name text[], in_body bytea[], in_children bytea[], in_child_count smallint[],
    in_body_bytes integer[], in_submitted_at_ms bigint[], in_entities text[], in_tell_group text
) RETURNS TABLE (taken bigint, known bigint) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    numbers bigint[];
    -- Whether the operation at each place is new.
    fresh boolean[];
    made bigint;
BEGIN
    PERFORM lock_operation_lines(in_instance);
    -- No other transaction stores operations of these instances now, so one that is not known now is new.
    SELECT array_agg(r.turn = 1 AND k.is_known IS NULL ORDER BY r.place),
        count(*) FILTER (WHERE r.turn = 1 AND k.is_known IS NULL)
    INTO fresh, made
    FROM (
        -- Only the first place counts for an operation that is in a batch twice.
        SELECT u.*, row_number() OVER (
            PARTITION BY u.instance_id, u.device_id, u.operation_id ORDER BY u.place) AS turn
        FROM unnest(in_instance, in_device, in_operation) WITH ORDINALITY
            AS u (instance_id, device_id, operation_id, place)
    ) r
    -- The limit forces one lookup for each operation with every plan.
    LEFT JOIN LATERAL (
        SELECT true AS is_known FROM device_operation o
        WHERE o.device_id = r.device_id AND o.operation_id = r.operation_id AND o.instance_id = r.instance_id
        LIMIT 1
    ) k ON true;
    SELECT array_agg(nextval('device_operation_number_seq')) INTO numbers
    FROM generate_series(1, cardinality(in_instance));
    INSERT INTO device_operation_turn (entity, number)
    SELECT unnest(u.entities::bigint[]), numbers[u.place]
    FROM unnest(in_entities) WITH ORDINALITY AS u (entities, place) WHERE fresh[u.place];
    INSERT INTO device_operation (
        number, instance_id, device_id, operation_id, user_id, session, component, entity_key, name, body, children,
        child_count, body_bytes, submitted_at_ms, entities, blocked_by)
    SELECT numbers[r.place], r.instance_id, r.device_id, r.operation_id, r.user_id, r.session, r.component,
        r.entity_key, r.name, r.body, r.children, r.child_count, r.body_bytes, r.submitted_at_ms, r.entities::bigint[],
        l.blocked_by
    FROM unnest(
        in_instance, in_device, in_operation, in_user, in_session, in_component, in_key, in_name, in_body,
        in_children, in_child_count, in_body_bytes, in_submitted_at_ms, in_entities
    ) WITH ORDINALITY AS r (
        instance_id, device_id, operation_id, user_id, session, component, entity_key, name, body, children,
        child_count, body_bytes, submitted_at_ms, entities, place)
    CROSS JOIN LATERAL (
        SELECT count(first.is_before) AS blocked_by
        FROM unnest(r.entities::bigint[]) AS e (entity)
        CROSS JOIN LATERAL (
            SELECT true AS is_before FROM device_operation_turn t
            WHERE t.entity = e.entity AND t.number < numbers[r.place] LIMIT 1
        ) first
    ) l
    WHERE fresh[r.place];
    IF made < cardinality(in_instance) THEN
        UPDATE device_operation o SET state = 2 /* answered */, tell_group = in_tell_group || '-' || o.number,
            claimed_until = '-infinity'
        FROM unnest(in_instance, in_device, in_operation) AS r (instance_id, device_id, operation_id)
        WHERE o.instance_id = r.instance_id AND o.device_id = r.device_id AND o.operation_id = r.operation_id
            -- The sum keeps the plan off the index of finished operations.
            AND o.state + 0 > 2 /* finished */ AND o.done_at < clock_timestamp() - interval '10 s';
    END IF;
    RETURN QUERY SELECT made, cardinality(in_instance) - made;
END $$;

-- Claims operations that have their turn, at most `in_most` for each instance, the longest waiting first; the claimer
-- has `in_lease` to answer. Operations that wait since before `in_from_ms` are not read: finished operations leave dead
-- entries in that part of the index until the next vacuum.
CREATE OR REPLACE FUNCTION claim_device_operations(
    in_instance text[], in_most integer[], in_from_ms bigint[], in_claimer text, in_lease interval
) RETURNS SETOF device_operation LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    present timestamptz := clock_timestamp();
BEGIN
    -- A claim that a crash of the server loses only causes another call, with the same key.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- No pause is that long, so the clock was set back. It is a statement of its own, so that claims read no paused
    -- operations.
    IF 0 = ANY (in_from_ms) THEN
        UPDATE device_operation o SET next_at = present
        FROM unnest(in_instance) AS i (instance_id)
        CROSS JOIN LATERAL (
            SELECT d.number FROM device_operation d
            WHERE d.instance_id = i.instance_id AND d.state = 1 /* waiting */ AND d.blocked_by = 0
                AND d.next_at > present + interval '6 minutes'
            ORDER BY d.next_at, d.number LIMIT 1000 FOR UPDATE SKIP LOCKED
        ) late
        WHERE o.instance_id = i.instance_id AND o.number = late.number;
    END IF;
    RETURN QUERY
        -- Materialized: evaluated once with every plan, because a second evaluation would skip the rows that the
        -- first one locked.
        WITH due AS MATERIALIZED (
            SELECT i.instance_id, l.number
            FROM unnest(in_instance, in_most, in_from_ms) AS i (instance_id, most, from_ms)
            CROSS JOIN LATERAL (
                SELECT d.number FROM device_operation d
                WHERE d.instance_id = i.instance_id AND d.state = 1 /* waiting */ AND d.blocked_by = 0
                    AND d.next_at BETWEEN to_timestamp(i.from_ms / 1000.0) AND present
                    -- No claim is that long, so the clock was set back.
                    AND (d.claimed_until <= present OR d.claimed_until > present + interval '6 minutes')
                ORDER BY d.next_at, d.number LIMIT i.most FOR UPDATE SKIP LOCKED
            ) l
        )
        UPDATE device_operation o
        SET claimed_by = in_claimer, attempts = o.attempts + 1, claimed_until = present + in_lease
        FROM due WHERE o.instance_id = due.instance_id AND o.number = due.number
        RETURNING o.*;
END $$;

-- Records the answers of calls. Outcome 0: the call is repeated after a pause. A lost claim changes nothing. Returns
-- the numbers of the operations that the claimer announces now, with the time for devices: the same in every repeat,
-- and later than that of an earlier result, also when the clocks of claimers differ.
CREATE OR REPLACE FUNCTION answer_device_operations(
    in_instance text[], in_number bigint[], in_attempt integer[], in_claimer text, in_outcome smallint[],
    in_code integer[], in_message text[], in_request_id text[], in_import bytea[], in_pause_ms bigint[],
    in_tell_group text[], in_answered_at_ms bigint, in_lease interval
) RETURNS TABLE (answered bigint, told_at_ms bigint) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    present timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
        WITH noted AS (
            UPDATE device_operation o SET
                state = CASE WHEN r.outcome = 0 /* none */ THEN 1 /* waiting */ ELSE 2 /* answered */ END,
                outcome = nullif(r.outcome, 0), code = r.code, message = r.message, request_id = r.request_id,
                import = nullif(r.import, ''),
                answered_at = CASE WHEN r.outcome = 0 /* none */ THEN o.answered_at ELSE
                    greatest(to_timestamp(in_answered_at_ms / 1000.0), o.answered_at + interval '1 ms') END,
                tell_group = CASE WHEN r.outcome <> 0 /* none */ THEN r.tell_group END,
                claimed_by = CASE WHEN r.outcome <> 0 /* none */ THEN in_claimer ELSE '' END,
                next_at = CASE WHEN r.outcome <> 0 /* none */ THEN o.next_at
                    ELSE present + r.pause_ms * interval '1 ms' END,
                claimed_until = CASE WHEN r.outcome <> 0 /* none */ THEN present + in_lease ELSE '-infinity' END
            FROM unnest(
                in_instance, in_number, in_attempt, in_outcome, in_code, in_message, in_request_id, in_import,
                in_pause_ms, in_tell_group
            ) AS r (instance_id, number, attempt, outcome, code, message, request_id, import, pause_ms, tell_group)
            -- The sum keeps the plan off the index of waiting operations, which a plan from a short index would read
            -- whole.
            WHERE o.instance_id = r.instance_id AND o.number = r.number AND o.state + 0 = 1 /* waiting */
                AND o.claimed_by = in_claimer AND o.attempts = r.attempt
            RETURNING o.instance_id, o.number, o.state, o.component, o.outcome, o.attempts, o.answered_at,
                greatest(extract(epoch FROM present - o.taken_at) * 1000, 0)::bigint AS waited_ms
        ), counted AS (
            -- In one order, so that no two relays wait for each other.
            INSERT INTO device_operation_day AS d
            SELECT n.instance_id, (present AT TIME ZONE 'UTC')::date, n.component,
                count(*) FILTER (WHERE n.outcome = 3 /* accepted */),
                count(*) FILTER (WHERE n.outcome = 4 /* refused */),
                count(*) FILTER (WHERE n.outcome = 5 /* dead */), sum(n.attempts), sum(n.waited_ms)
            FROM noted n WHERE n.state = 2 /* answered */
            GROUP BY n.instance_id, n.component ORDER BY n.instance_id, n.component
            ON CONFLICT (instance_id, day, component) DO UPDATE SET
                accepted = d.accepted + excluded.accepted, refused = d.refused + excluded.refused,
                dead = d.dead + excluded.dead, attempts = d.attempts + excluded.attempts,
                waited_ms = d.waited_ms + excluded.waited_ms
        )
        SELECT n.number, floor(extract(epoch FROM n.answered_at) * 1000)::bigint FROM noted n
        WHERE n.state = 2 /* answered */;
END $$;

-- Claims groups of answered operations whose results were not announced in time.
CREATE OR REPLACE FUNCTION claim_untold_operations(in_claimer text, in_lease interval, in_most integer)
RETURNS SETOF device_operation LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    present timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
        WITH untold AS MATERIALIZED (
            SELECT DISTINCT g.tell_group FROM (
                SELECT d.tell_group FROM device_operation d
                WHERE d.state = 2 /* answered */
                    AND (d.claimed_until <= present OR d.claimed_until > present + interval '6 minutes')
                ORDER BY d.tell_group LIMIT in_most FOR UPDATE SKIP LOCKED
            ) g
        )
        UPDATE device_operation o SET claimed_by = in_claimer, claimed_until = present + in_lease
        FROM untold WHERE o.state = 2 /* answered */ AND o.tell_group = untold.tell_group
        RETURNING o.*;
END $$;

-- Finishes operations whose results were announced, and advances the operations behind them at their entities. Data
-- that only a call needs is erased, except for dead operations, which may be retried. Returns, for each instance, the
-- earliest time since which an operation that has its turn now waits.
CREATE OR REPLACE FUNCTION finish_device_operations(in_instance text[], in_number bigint[], in_tell_group text[])
RETURNS TABLE (moved_instance text, turn_ms bigint) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    left_instance text[];
    left_entity bigint[];
BEGIN
    PERFORM lock_operation_lines(in_instance);
    -- A finish that a crash of the server loses is announced again under the same key. The next operation's answer is
    -- on the disk only when this finish is, so the order holds.
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH told AS (
        UPDATE device_operation o SET
            state = o.outcome, done_at = clock_timestamp(), claimed_by = '', import = NULL, tell_group = NULL,
            body = CASE WHEN o.outcome = 5 /* dead */ THEN o.body ELSE '' END,
            children = CASE WHEN o.outcome = 5 /* dead */ THEN o.children ELSE '' END,
            session = CASE WHEN o.outcome = 5 /* dead */ THEN o.session ELSE '' END
        FROM unnest(in_instance, in_number, in_tell_group) AS r (instance_id, number, tell_group)
        -- The sum keeps the plan off the index of unannounced results, which a plan from a short index would read
        -- whole.
        WHERE o.instance_id = r.instance_id AND o.number = r.number AND o.state + 0 = 2 /* answered */
            AND o.tell_group = r.tell_group
        RETURNING o.instance_id, o.number, o.entities
    ), gone AS (
        DELETE FROM device_operation_turn t USING (
            SELECT d.instance_id, unnest(d.entities) AS entity, d.number FROM told d
        ) l
        WHERE t.entity = l.entity AND t.number = l.number
        RETURNING l.instance_id, t.entity
    )
    SELECT array_agg(g.instance_id), array_agg(g.entity) INTO left_instance, left_entity FROM gone g;
    RETURN QUERY
        WITH moved AS (
            UPDATE device_operation o SET blocked_by = o.blocked_by - n.lines
            FROM (
                SELECT l.instance_id, up.number, count(*)::integer AS lines
                FROM unnest(left_instance, left_entity) AS l (instance_id, entity)
                CROSS JOIN LATERAL (
                    SELECT t.number FROM device_operation_turn t WHERE t.entity = l.entity ORDER BY t.number LIMIT 1
                ) up
                GROUP BY l.instance_id, up.number
            ) n
            WHERE o.instance_id = n.instance_id AND o.number = n.number
            RETURNING o.instance_id, o.next_at, o.blocked_by
        )
        SELECT m.instance_id, floor(extract(epoch FROM min(m.next_at)) * 1000)::bigint FROM moved m
        WHERE m.blocked_by = 0 GROUP BY m.instance_id;
END $$;

GRANT EXECUTE ON FUNCTION take_device_operations, claim_device_operations, answer_device_operations,
    claim_untold_operations, finish_device_operations TO mss_relay;
