-- Operations of devices: taken, called at the tenant, told (Services/Relay; DeviceProtocol.md, Operations).

-- ---- where they go -------------------------------------------------------------------------------------------------

-- Empty: the instance takes no operations.
ALTER TABLE instance ADD COLUMN relay_url text NOT NULL DEFAULT '';

-- An instance as records show it.
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

-- Results are pushed under a Sync ID of their own, which comes with the endpoint. One that is there stays as it is.
CREATE FUNCTION make_result_configuration(in_actor text[], in_row instance) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF in_row.relay_url <> '' THEN
        PERFORM FROM change_configuration(in_actor, 'create', ROW(
            in_row.instance_id, 'MSS_RESULTS', 'Results of operations', 1, false, true, 0, false, true, false, NULL, 1,
            NULL, '', '', '', false)::sync_configuration);
    END IF;
END $$;

-- Creates an instance (`create`), changes one that still has the revision given (`modify`), or whichever is needed
-- (`put`). A modification that comes twice finds its own effect.
CREATE OR REPLACE FUNCTION change_instance(in_actor text[], in_way text, in_row instance)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    known bigint := in_row.revision;
    held instance;
    rest instance;
    action integer := 21;
BEGIN
    IF in_way <> 'modify' THEN
        in_row.revision := first_revision();
        -- Of two that come first at once one waits here for the other's commit, and sees it below.
        INSERT INTO instance VALUES (in_row.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM make_result_configuration(in_actor, in_row);
            RETURN QUERY SELECT * FROM finish_change(
                in_actor, 20, in_row.instance_id, in_row.instance_id, NULL, instance_members(in_row));
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
        -- The answer to a repeat is as durable as the first one.
        UPDATE instance n SET revision = n.revision WHERE n.instance_id = held.instance_id;
        RETURN QUERY SELECT c.version, false, false FROM control_version c;
        RETURN;
    END IF;
    IF in_way = 'modify' AND known <> held.revision THEN
        RETURN QUERY SELECT NULL::bigint, false, true;
        RETURN;
    END IF;
    -- A change of one switch alone has a name of its own.
    rest := in_row;
    rest.requires_signature := held.requires_signature;
    IF rest IS NOT DISTINCT FROM held THEN
        action := CASE WHEN in_row.requires_signature THEN 24 ELSE 25 END;
    END IF;
    rest := in_row;
    rest.is_enabled := held.is_enabled;
    IF rest IS NOT DISTINCT FROM held THEN
        action := CASE WHEN in_row.is_enabled THEN 22 ELSE 23 END;
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

-- ---- operations ----------------------------------------------------------------------------------------------------

-- One that is taken waits (state 1) until the tenant has answered, or it is given up; then it is answered (2) until its
-- device, and those of its user, have been told; then it is over: accepted (3), refused (4) or dead (5). What is over
-- is kept for the retention, so that a repeat is known.
CREATE TABLE device_operation (
    -- Rises in the order in which the operations of an instance were taken.
    number bigint GENERATED BY DEFAULT AS IDENTITY,
    instance_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    operation_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    -- The session's id, sealed; empty: it cannot be kept.
    session bytea NOT NULL,
    component text COLLATE "C" NOT NULL,
    entity_key text COLLATE "C" NOT NULL,
    name text NOT NULL,
    body bytea NOT NULL,
    -- DeviceOperationList; empty: none.
    children bytea NOT NULL,
    child_count smallint NOT NULL,
    body_bytes integer NOT NULL,
    submitted_at_ms bigint NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Hashes of the things that it is done to.
    entities bigint[] NOT NULL,
    state smallint NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 5),
    -- Of its entities, at how many another one is before it.
    blocked_by integer NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    -- Since when it waits for its turn: since it was taken; after a pause, when its turn comes.
    next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Until then nobody else may claim it; whoever has claimed it and not answered counts as dead then. No index has
    -- these, so that a claim changes none.
    claimed_until timestamptz NOT NULL DEFAULT '-infinity',
    claimed_by text NOT NULL DEFAULT '',
    -- The state that it comes to once its answer is told.
    outcome smallint CHECK (outcome BETWEEN 3 AND 5),
    -- The last answer's.
    code integer NOT NULL DEFAULT 0,
    message text NOT NULL DEFAULT '',
    request_id text NOT NULL DEFAULT '',
    answered_at timestamptz,
    -- The tenant's new state of the entity, for all devices of the user; until it is told.
    import bytea,
    -- Results of one group are told in one oplog.
    tell_group text,
    done_at timestamptz,
    PRIMARY KEY (instance_id, number),
    -- In this order, so that nothing but the primary key begins with the instance: a plan that was made while the table
    -- was small stays the right one.
    UNIQUE (device_id, operation_id, instance_id)
) WITH (fillfactor = 50); -- so that a claim stays on its page, and changes no index
CREATE INDEX device_operation_waiting ON device_operation (instance_id, blocked_by, next_at, number) WHERE state = 1;
CREATE INDEX device_operation_untold ON device_operation (tell_group) WHERE state = 2;
CREATE INDEX device_operation_done ON device_operation (instance_id, done_at) WHERE state > 2;
CREATE INDEX device_operation_dead ON device_operation (instance_id, number) WHERE state = 5;

-- Who is where in the line at each entity. The one with the lowest number has its turn.
CREATE TABLE device_operation_turn (
    entity bigint NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (entity, number)
);

-- Operations by the UTC day of their answers; one that was given up and is done after all counts in both. Written with
-- the answers themselves, so that each counts once. For 400 days.
CREATE TABLE device_operation_day (
    instance_id text COLLATE "C" NOT NULL,
    day date NOT NULL,
    component text COLLATE "C" NOT NULL,
    accepted bigint NOT NULL,
    refused bigint NOT NULL,
    dead bigint NOT NULL,
    -- Calls of the tenant.
    attempts bigint NOT NULL,
    -- From being taken to the answer, in all.
    waited_ms bigint NOT NULL,
    PRIMARY KEY (instance_id, day, component)
) WITH (fillfactor = 50);
CREATE INDEX device_operation_day_by_age ON device_operation_day (day);

-- Lines of an instance are joined and left by one transaction at a time: who joins sees everybody before it, and who
-- leaves sees everybody behind it. Instances come in one order, so nobody waits for anybody in a circle.
CREATE FUNCTION lock_operation_lines(in_instance text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    line integer;
BEGIN
    FOR line IN SELECT DISTINCT hashtext(i) FROM unnest(in_instance) i ORDER BY 1 LOOP
        PERFORM pg_advisory_xact_lock(hashtext('mss operations'), line);
    END LOOP;
END $$;

-- Takes operations, in this order, in one transaction. Those that are known change nothing; of one that is over the
-- result is told once more, without the import, since its device would not ask if it had it. `in_entities` has the
-- entities of each as the text of an array, each once.
CREATE FUNCTION take_device_operations(
    in_instance text[], in_device text[], in_operation text[], in_user text[], in_session bytea[], in_component text[],
    in_key text[], in_name text[], in_body bytea[], in_children bytea[], in_child_count smallint[],
    in_body_bytes integer[], in_submitted_at_ms bigint[], in_entities text[], in_tell_group text
) RETURNS TABLE (taken bigint, known bigint) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    numbers bigint[];
    -- By its place, whether one is new.
    fresh boolean[];
    made bigint;
BEGIN
    PERFORM lock_operation_lines(in_instance);
    -- Whoever else takes operations of these instances is locked out: what is not known now is nobody's.
    SELECT array_agg(r.turn = 1 AND k.is_known IS NULL ORDER BY r.place),
        count(*) FILTER (WHERE r.turn = 1 AND k.is_known IS NULL)
    INTO fresh, made
    FROM (
        -- Of one that comes twice in a batch the first place counts.
        SELECT u.*, row_number() OVER (
            PARTITION BY u.instance_id, u.device_id, u.operation_id ORDER BY u.place) AS turn
        FROM unnest(in_instance, in_device, in_operation) WITH ORDINALITY
            AS u (instance_id, device_id, operation_id, place)
    ) r
    -- The limit makes it one look for each, whatever the plan.
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
        UPDATE device_operation o SET state = 2, tell_group = in_tell_group || '-' || o.number,
            claimed_until = '-infinity'
        FROM unnest(in_instance, in_device, in_operation) AS r (instance_id, device_id, operation_id)
        WHERE o.instance_id = r.instance_id AND o.device_id = r.device_id AND o.operation_id = r.operation_id
            -- The sum keeps the plan off the index of what is over.
            AND o.state + 0 > 2 AND o.done_at < clock_timestamp() - interval '10 s';
    END IF;
    RETURN QUERY SELECT made, cardinality(in_instance) - made;
END $$;

-- Claims operations whose turn it is, for each instance at most so many, the longest waiting first; whoever claims one
-- has `in_lease` to answer. What waits since before `in_from_ms` is not looked for: what is over leaves that part of
-- the index full until the next vacuum.
CREATE FUNCTION claim_device_operations(
    in_instance text[], in_most integer[], in_from_ms bigint[], in_claimer text, in_lease interval
) RETURNS SETOF device_operation LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    present timestamptz := clock_timestamp();
BEGIN
    -- A claim that is lost with the server only means another call, with the same key.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- No pause is that long: the clock has gone back since. A statement of its own, so that claims read nothing that
    -- pauses.
    IF 0 = ANY (in_from_ms) THEN
        UPDATE device_operation o SET next_at = present
        FROM unnest(in_instance) AS i (instance_id)
        CROSS JOIN LATERAL (
            SELECT d.number FROM device_operation d
            WHERE d.instance_id = i.instance_id AND d.state = 1 AND d.blocked_by = 0
                AND d.next_at > present + interval '6 minutes'
            ORDER BY d.next_at, d.number LIMIT 1000 FOR UPDATE SKIP LOCKED
        ) late
        WHERE o.instance_id = i.instance_id AND o.number = late.number;
    END IF;
    RETURN QUERY
        -- Materialized: looked for once, whatever the plan, since a second look would pass over what the first found.
        WITH due AS MATERIALIZED (
            SELECT i.instance_id, l.number
            FROM unnest(in_instance, in_most, in_from_ms) AS i (instance_id, most, from_ms)
            CROSS JOIN LATERAL (
                SELECT d.number FROM device_operation d
                WHERE d.instance_id = i.instance_id AND d.state = 1 AND d.blocked_by = 0
                    AND d.next_at BETWEEN to_timestamp(i.from_ms / 1000.0) AND present
                    -- No claim is that long: the clock has gone back since.
                    AND (d.claimed_until <= present OR d.claimed_until > present + interval '6 minutes')
                ORDER BY d.next_at, d.number LIMIT i.most FOR UPDATE SKIP LOCKED
            ) l
        )
        UPDATE device_operation o
        SET claimed_by = in_claimer, attempts = o.attempts + 1, claimed_until = present + in_lease
        FROM due WHERE o.instance_id = due.instance_id AND o.number = due.number
        RETURNING o.*;
END $$;

-- Notes what calls came to. Outcome 0: it is tried again after a pause. Who has lost a claim meanwhile changes nothing.
-- Answers the numbers of those that are to be told now, by the one who claimed them, with the time that devices are
-- told: the same in every repeat, and later than that of an earlier result, whatever clock the claimer has.
CREATE FUNCTION answer_device_operations(
    in_instance text[], in_number bigint[], in_attempt integer[], in_claimer text, in_outcome smallint[],
    in_code integer[], in_message text[], in_request_id text[], in_import bytea[], in_pause_ms bigint[],
    in_tell_group text[], in_answered_at_ms bigint, in_lease interval
) RETURNS TABLE (answered bigint, told_at_ms bigint) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    present timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
        WITH noted AS (
            UPDATE device_operation o SET
                state = CASE WHEN r.outcome = 0 THEN 1 ELSE 2 END, outcome = nullif(r.outcome, 0), code = r.code,
                message = r.message, request_id = r.request_id, import = nullif(r.import, ''),
                answered_at = CASE WHEN r.outcome = 0 THEN o.answered_at ELSE
                    greatest(to_timestamp(in_answered_at_ms / 1000.0), o.answered_at + interval '1 ms') END,
                tell_group = CASE WHEN r.outcome <> 0 THEN r.tell_group END,
                claimed_by = CASE WHEN r.outcome <> 0 THEN in_claimer ELSE '' END,
                next_at = CASE WHEN r.outcome <> 0 THEN o.next_at ELSE present + r.pause_ms * interval '1 ms' END,
                claimed_until = CASE WHEN r.outcome <> 0 THEN present + in_lease ELSE '-infinity' END
            FROM unnest(
                in_instance, in_number, in_attempt, in_outcome, in_code, in_message, in_request_id, in_import,
                in_pause_ms, in_tell_group
            ) AS r (instance_id, number, attempt, outcome, code, message, request_id, import, pause_ms, tell_group)
            -- The sum keeps the plan off the index of what waits, which a plan made while that was short reads whole.
            WHERE o.instance_id = r.instance_id AND o.number = r.number AND o.state + 0 = 1
                AND o.claimed_by = in_claimer AND o.attempts = r.attempt
            RETURNING o.instance_id, o.number, o.state, o.component, o.outcome, o.attempts, o.answered_at,
                greatest(extract(epoch FROM present - o.taken_at) * 1000, 0)::bigint AS waited_ms
        ), counted AS (
            -- In one order, so that no two relays wait for each other.
            INSERT INTO device_operation_day AS d
            SELECT n.instance_id, (present AT TIME ZONE 'UTC')::date, n.component,
                count(*) FILTER (WHERE n.outcome = 3), count(*) FILTER (WHERE n.outcome = 4),
                count(*) FILTER (WHERE n.outcome = 5), sum(n.attempts), sum(n.waited_ms)
            FROM noted n WHERE n.state = 2 GROUP BY n.instance_id, n.component ORDER BY n.instance_id, n.component
            ON CONFLICT (instance_id, day, component) DO UPDATE SET
                accepted = d.accepted + excluded.accepted, refused = d.refused + excluded.refused,
                dead = d.dead + excluded.dead, attempts = d.attempts + excluded.attempts,
                waited_ms = d.waited_ms + excluded.waited_ms
        )
        SELECT n.number, floor(extract(epoch FROM n.answered_at) * 1000)::bigint FROM noted n WHERE n.state = 2;
END $$;

-- Claims groups of answered operations that nobody has told in time.
CREATE FUNCTION claim_untold_operations(in_claimer text, in_lease interval, in_most integer)
RETURNS SETOF device_operation LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    present timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
        WITH untold AS MATERIALIZED (
            SELECT DISTINCT g.tell_group FROM (
                SELECT d.tell_group FROM device_operation d
                WHERE d.state = 2
                    AND (d.claimed_until <= present OR d.claimed_until > present + interval '6 minutes')
                ORDER BY d.tell_group LIMIT in_most FOR UPDATE SKIP LOCKED
            ) g
        )
        UPDATE device_operation o SET claimed_by = in_claimer, claimed_until = present + in_lease
        FROM untold WHERE o.state = 2 AND o.tell_group = untold.tell_group
        RETURNING o.*;
END $$;

-- These have been told: they are over, and whoever stands behind them at their entities moves up. What only a call
-- needs is not kept, but of those that may be called again. Answers since when the longest waiting waits of those whose
-- turn it is now, for each instance.
CREATE FUNCTION finish_device_operations(in_instance text[], in_number bigint[], in_tell_group text[])
RETURNS TABLE (moved_instance text, turn_ms bigint) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    left_instance text[];
    left_entity bigint[];
BEGIN
    PERFORM lock_operation_lines(in_instance);
    -- What is lost with the server is told once more under the same key. The next one's answer is on the disk only when
    -- this is, so the order holds.
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH told AS (
        UPDATE device_operation o SET
            state = o.outcome, done_at = clock_timestamp(), claimed_by = '', import = NULL, tell_group = NULL,
            body = CASE WHEN o.outcome = 5 THEN o.body ELSE '' END,
            children = CASE WHEN o.outcome = 5 THEN o.children ELSE '' END,
            session = CASE WHEN o.outcome = 5 THEN o.session ELSE '' END
        FROM unnest(in_instance, in_number, in_tell_group) AS r (instance_id, number, tell_group)
        -- The sum keeps the plan off the index of what is untold, which one made while that was short reads whole.
        WHERE o.instance_id = r.instance_id AND o.number = r.number AND o.state + 0 = 2 AND o.tell_group = r.tell_group
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

-- ---- what people ask -----------------------------------------------------------------------------------------------

-- Newest first. State 0, and empty texts: of all.
CREATE FUNCTION list_device_operations(
    in_instance text, in_state smallint, in_device text, in_user text, in_operation text, in_before bigint,
    in_most integer
) RETURNS SETOF device_operation LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT o.* FROM device_operation o
    WHERE o.instance_id = in_instance AND (in_state = 0 OR o.state = in_state)
        AND (in_device = '' OR o.device_id = in_device) AND (in_user = '' OR o.user_id = in_user)
        AND (in_operation = '' OR o.operation_id = in_operation) AND (in_before = 0 OR o.number < in_before)
    ORDER BY o.number DESC LIMIT in_most
$$;

-- How many of an instance wait, are being told, and are dead.
CREATE FUNCTION count_device_operations(in_instance text)
RETURNS TABLE (counted_state smallint, operations bigint) LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT 1::smallint, count(*) FROM device_operation o WHERE o.instance_id = in_instance AND o.state = 1
    UNION ALL SELECT 2::smallint, count(*) FROM device_operation o WHERE o.instance_id = in_instance AND o.state = 2
    UNION ALL SELECT 5::smallint, count(*) FROM device_operation o WHERE o.instance_id = in_instance AND o.state = 5
$$;

-- The figures of an instance's last days, the newest first.
CREATE FUNCTION list_operation_days(in_instance text, in_days integer)
RETURNS SETOF device_operation_day LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT d.* FROM device_operation_day d
    WHERE d.instance_id = in_instance AND d.day > (clock_timestamp() AT TIME ZONE 'UTC')::date - in_days
    ORDER BY d.day DESC, d.component LIMIT 1000
$$;

-- Has a dead operation done after all, behind whatever was taken since at its entities; false: there is no such one.
CREATE FUNCTION retry_device_operation(in_actor text[], in_instance text, in_device text, in_operation text)
RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held device_operation;
    last bigint;
BEGIN
    PERFORM lock_operation_lines(ARRAY[in_instance]);
    SELECT * INTO held FROM device_operation o
    WHERE o.instance_id = in_instance AND o.device_id = in_device AND o.operation_id = in_operation AND o.state = 5
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    last := nextval('device_operation_number_seq');
    INSERT INTO device_operation_turn (entity, number) SELECT unnest(held.entities), last;
    UPDATE device_operation o SET
        number = last, state = 1, attempts = 0, next_at = clock_timestamp(), claimed_until = '-infinity',
        outcome = NULL, done_at = NULL, taken_at = clock_timestamp(),
        blocked_by = (
            SELECT count(*) FROM unnest(held.entities) l (entity)
            WHERE EXISTS (SELECT FROM device_operation_turn f WHERE f.entity = l.entity AND f.number < last))
    WHERE o.instance_id = held.instance_id AND o.number = held.number;
    PERFORM record_operation(
        in_actor, 70::smallint, in_instance, in_operation, NULL,
        jsonb_build_object('deviceId', in_device, 'operationId', in_operation, 'component', held.component,
            'entityKey', held.entity_key, 'operation', held.name));
    RETURN true;
END $$;

-- Forgets operations whose time is over: a repeat of one would be a new one.
CREATE FUNCTION forget_device_operations(in_most integer) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    WITH ended AS (
        SELECT i.instance_id, d.number FROM instance i
        CROSS JOIN LATERAL (
            SELECT o.number FROM device_operation o
            WHERE o.instance_id = i.instance_id AND o.state > 2
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

GRANT EXECUTE ON FUNCTION enter_incarnation, take_device_operations, claim_device_operations, answer_device_operations,
    claim_untold_operations, finish_device_operations, list_device_operations, count_device_operations,
    list_operation_days, retry_device_operation, forget_device_operations TO mss_relay;
SELECT belt('device_operation');
SELECT belt('device_operation_day');
