-- Appends and recalls oplogs (Design.md#from-push-to-oplog).

-- The places (from 1 on) of those channels that another transaction holds locked now. A writer whose batch was refused
-- for a lock calls this, so that the rows of a locked channel do not delay the rows of the others.
CREATE OR REPLACE FUNCTION find_locked_channels(
    in_instance text[], in_kind smallint[], in_biz_type text[], in_target text[]
) RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    found_id bigint;
BEGIN
    FOR n IN 1..cardinality(in_kind) LOOP
        SELECT c.channel_id INTO found_id FROM channel c
        WHERE c.instance_id = in_instance[n] AND c.kind = in_kind[n] AND c.target = in_target[n]
            AND c.biz_type = in_biz_type[n];
        CONTINUE WHEN NOT FOUND;
        PERFORM FROM channel c WHERE c.channel_id = found_id FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN RETURN NEXT n; END IF;
    END LOOP;
END $$;

-- Appends a batch and answers every row, in one transaction and one round trip. Configurations, channels and rows have
-- arrays of their own. A channel names its configuration, and a row its channel, by the place in the array, from 1 on.
-- Every writer passes each channel once, in the order of the addresses. `in_rows` says how many ids each channel draws,
-- and `in_number` which of them a row has. No two rows have the same channel and `thirdMsgId`.
--
-- The configuration is read here, in the same transaction, so the rules in force now decide (D17). A row without an
-- online configuration has no effect and no answer.
--
-- Lock first, read later: drawing the ids takes the channel's lock, and the statement after all locks sees the commits
-- of earlier lock holders. The same logic in one statement would read with the snapshot from before the wait and store
-- a duplicate. A row that repeats a `thirdMsgId` also draws an id, which stays unused: this write makes the duplicate
-- answer as durable as the first.
CREATE OR REPLACE FUNCTION append_oplogs(
    in_instance text[], in_kind smallint[], in_biz_type text[],
    in_configuration integer[], in_target text[], in_rows integer[],
    in_channel integer[], in_number integer[], in_third_message_id text[], in_third_message_hash bigint[],
    in_payload bytea[], in_is_binary boolean[], in_operating_system smallint[], in_minimum_version text[],
    in_maximum_version text[], in_share_start smallint[], in_share_size smallint[], in_valid_until_ms bigint[],
    in_attributes text[], in_conversation text[]
) RETURNS TABLE (
    ordinal bigint, channel bigint, id bigint, is_duplicate boolean, head_before bigint,
    valid_until_ms bigint, created_at_ms bigint, is_persistent boolean, is_single_device boolean,
    checks_session boolean, is_immediate boolean, awaits_outcome boolean, written_at_ms bigint
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    first_id bigint;
    written_at timestamptz;
    oldest timestamptz;
    newest timestamptz;
    rule record;
    data_since timestamptz[];
    retention interval[];
    persistent boolean[];
    single_device boolean[];
    checked boolean[];
    immediate boolean[];
    drawn record;
    place integer := 0;
    channels bigint[];
    heads bigint[];
BEGIN
    SELECT epoch << 40 INTO STRICT first_id FROM incarnation;
    FOR n IN 1..cardinality(in_kind) LOOP
        SELECT f.kind, f.is_multi_device, f.is_persistent, f.checks_session, f.is_immediate, f.data_since, i.retention
        INTO rule
        FROM sync_configuration f JOIN instance i ON i.instance_id = f.instance_id
        WHERE f.instance_id = in_instance[n] AND f.biz_type = in_biz_type[n] AND f.kind = in_kind[n]
            AND f.is_online AND i.is_enabled;
        CONTINUE WHEN NOT FOUND;
        data_since[n] := rule.data_since;
        oldest := least(oldest, rule.data_since);
        newest := greatest(newest, rule.data_since);
        retention[n] := rule.retention;
        persistent[n] := rule.is_persistent;
        single_device[n] := rule.kind = 0 /* user */ AND NOT rule.is_multi_device;
        checked[n] := rule.checks_session;
        immediate[n] := rule.is_immediate;
    END LOOP;

    -- One statement makes, or locks and raises, all channels, one after the other in the order of the array. No plan
    -- can change that, because there is no join. Each channel takes a value of the sequence of `channel_id`, also one
    -- that exists; 64 bits are enough for that.
    FOR drawn IN
        INSERT INTO channel AS c (instance_id, kind, target, biz_type, head)
        SELECT in_instance[r.k], in_kind[r.k], r.target, in_biz_type[r.k], first_id + r.rows
        FROM unnest(in_configuration, in_target, in_rows) AS r (k, target, rows)
        WHERE data_since[r.k] IS NOT NULL
        ON CONFLICT (instance_id, kind, target, biz_type)
        DO UPDATE SET head = greatest(c.head, first_id) + excluded.head - first_id
        RETURNING c.channel_id, c.head
    LOOP
        LOOP
            place := place + 1;
            EXIT WHEN data_since[in_configuration[place]] IS NOT NULL;
        END LOOP;
        channels[place] := drawn.channel_id;
        heads[place] := drawn.head - in_rows[place];
    END LOOP;
    written_at := clock_timestamp();
    -- With `oldest`, the times of every row that a push can repeat. They are variables, so the plan leaves out other
    -- partitions before it starts. Partitions of later weeks are not read; a row from a clock that was up to a day
    -- ahead is found.
    newest := greatest(written_at, newest) + interval '1 day';

    RETURN QUERY
    WITH located AS MATERIALIZED (
        SELECT r.*, channels[r.place] AS channel_id, in_configuration[r.place] AS k,
            heads[r.place] + r.number AS new_id,
            -- Never before the configuration, also by a clock that was set back: otherwise the row would be ignored.
            greatest(written_at, data_since[in_configuration[r.place]]) AS created_at,
            known.oplog_id AS known_id, known.awaits_outcome AS known_awaits_outcome,
            -- LEAST ignores nulls.
            least(
                CASE WHEN r.until_ms > 0 THEN to_timestamp(r.until_ms / 1000.0) END,
                written_at + retention[in_configuration[r.place]]) AS valid_until
        FROM unnest(
            in_channel, in_number, in_third_message_id, in_third_message_hash, in_payload, in_is_binary,
            in_operating_system, in_minimum_version, in_maximum_version, in_share_start, in_share_size,
            in_valid_until_ms, in_attributes, in_conversation
        ) WITH ORDINALITY AS r (
            place, number, third_message_id, third_message_hash, payload, is_binary, operating_system, minimum_version,
            maximum_version, share_start, share_size, until_ms, attributes, conversation, ordinal)
        LEFT JOIN LATERAL (
            SELECT o.oplog_id, o.awaits_outcome AND o.recalled_at IS NULL AS awaits_outcome FROM oplog o
            WHERE o.channel_id = channels[r.place] AND o.third_message_hash = r.third_message_hash
                AND o.third_message_id = r.third_message_id AND o.created_at >= data_since[in_configuration[r.place]]
                AND o.created_at BETWEEN oldest AND newest
            LIMIT 1
        ) AS known ON true
        WHERE channels[r.place] IS NOT NULL
    ), stored AS (
        INSERT INTO oplog (
            channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary, operating_system,
            minimum_version, maximum_version, share_start, share_size, valid_until, created_at, attributes,
            conversation, awaits_outcome)
        SELECT l.channel_id, l.new_id, l.third_message_id, l.third_message_hash,
            CASE WHEN persistent[l.k] THEN l.payload END, l.is_binary, l.operating_system, l.minimum_version,
            l.maximum_version, l.share_start, l.share_size, l.valid_until, l.created_at, nullif(l.attributes, ''),
            nullif(l.conversation, ''), CASE WHEN NOT persistent[l.k] THEN true END
        FROM located l WHERE l.known_id IS NULL
    )
    SELECT l.ordinal, l.channel_id, coalesce(l.known_id, l.new_id), l.known_id IS NOT NULL, heads[l.place],
        floor(extract(epoch FROM l.valid_until) * 1000)::bigint,
        floor(extract(epoch FROM l.created_at) * 1000)::bigint, persistent[l.k], single_device[l.k], checked[l.k],
        immediate[l.k],
        CASE WHEN l.known_id IS NULL THEN NOT persistent[l.k] ELSE l.known_awaits_outcome IS TRUE END,
        floor(extract(epoch FROM written_at) * 1000)::bigint
    FROM located l;
END $$;

-- Records that the outcome of non-persistent pushes is known. No row is older than `in_first_ms`, so only the
-- partitions from then on are read.
CREATE OR REPLACE FUNCTION record_live_outcomes(in_channel bigint[], in_id bigint[], in_first_ms bigint)
RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
    UPDATE oplog o SET awaits_outcome = false
    FROM unnest(in_channel, in_id) AS i (channel_id, oplog_id)
    WHERE o.channel_id = i.channel_id AND o.oplog_id = i.oplog_id AND o.awaits_outcome
        AND o.created_at >= to_timestamp(in_first_ms / 1000.0)
$$;

-- Recalls an oplog: erases its payload and appends a tombstone that names it (H7). No row: there is no such oplog. A
-- repeat changes nothing and answers as before. Only the connection's own instance is accessible: the row-level
-- policies below do not bind the owner, whose rights this function has. `in_person` is the operator for the audit
-- record; null: a backend requested the recall.
CREATE OR REPLACE FUNCTION recall_oplog(
    in_instance text, in_kind smallint, in_target text, in_biz_type text, in_third_message_id text, in_hash bigint,
    in_person text[]
) RETURNS TABLE (
    channel bigint, id bigint, tombstone bigint, head_before bigint, operating_system smallint, minimum_version text,
    maximum_version text, share_start smallint, share_size smallint, valid_until_ms bigint, created_at_ms bigint
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    found_channel channel;
    original oplog;
    mark oplog;
BEGIN
    SELECT * INTO found_channel FROM channel c
    WHERE c.instance_id = in_instance AND c.kind = in_kind AND c.target = in_target AND c.biz_type = in_biz_type
        AND in_instance = current_setting('mss.instance', true)
    FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT o.* INTO original FROM oplog o
    JOIN sync_configuration f ON f.instance_id = in_instance AND f.biz_type = in_biz_type
    WHERE o.channel_id = found_channel.channel_id AND o.third_message_hash = in_hash
        AND o.third_message_id = in_third_message_id AND o.created_at >= f.data_since;
    IF NOT FOUND THEN RETURN; END IF;
    DELETE FROM record_content c
    WHERE c.instance_id = in_instance AND c.third_message_id = in_third_message_id AND c.biz_type = in_biz_type
        AND c.target = in_target;
    IF original.recalled_at IS NULL THEN
        UPDATE oplog o SET payload = NULL, recalled_at = clock_timestamp()
        WHERE o.channel_id = original.channel_id AND o.oplog_id = original.oplog_id
            AND o.created_at = original.created_at;
        -- The tombstone is for the receivers of the original; it is kept for the longest time of an oplog.
        INSERT INTO oplog (
            channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary, operating_system,
            minimum_version, maximum_version, share_start, share_size, valid_until, created_at, recalls)
        SELECT original.channel_id, greatest(found_channel.head, (SELECT epoch << 40 FROM incarnation)) + 1, '', 0, '',
            false, original.operating_system, original.minimum_version, original.maximum_version, original.share_start,
            original.share_size, clock_timestamp() + interval '30 days',
            greatest(clock_timestamp(), original.created_at), original.oplog_id
        RETURNING * INTO mark;
        UPDATE channel c SET head = mark.oplog_id WHERE c.channel_id = original.channel_id;
        IF in_person IS NOT NULL THEN
            PERFORM record_operation(
                in_person, 11::smallint /* recall */, in_instance, in_biz_type, NULL, jsonb_build_object(
                    'target', in_target, 'thirdMsgId', in_third_message_id, 'oplogId', original.oplog_id));
        END IF;
    ELSE
        SELECT o.* INTO mark FROM oplog o
        WHERE o.channel_id = original.channel_id AND o.oplog_id > original.oplog_id AND o.recalls = original.oplog_id;
        -- Makes this answer as durable as the first.
        UPDATE channel c SET head = c.head WHERE c.channel_id = original.channel_id;
    END IF;
    RETURN QUERY SELECT original.channel_id, original.oplog_id, mark.oplog_id, found_channel.head,
        original.operating_system, original.minimum_version, original.maximum_version, original.share_start,
        original.share_size, floor(extract(epoch FROM mark.valid_until) * 1000)::bigint,
        floor(extract(epoch FROM mark.created_at) * 1000)::bigint;
END $$;

GRANT EXECUTE ON FUNCTION append_oplogs, record_live_outcomes, find_locked_channels TO mss_writer;
GRANT EXECUTE ON FUNCTION recall_oplog TO mss_operator;
