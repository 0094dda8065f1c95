-- The oplog's tables: channels, oplogs, sync points, sessions, leases, and the control data.
--
-- What a tier changes in more than one table, or must not change otherwise, it changes through functions: they run with
-- the rights of mss_owner (SECURITY DEFINER) and a fixed search_path, and the tier may execute them and no more. The
-- rights of each tier stand at the end of this file (SEC10).

-- ---- incarnation: which history of the database this is (design §4, ids) -------------------------------------------

-- The file name tells the new timeline at once after a promotion, pg_control_checkpoint() only later.
CREATE FUNCTION current_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint
$$;

-- Another one has another: a database that was put back from a dump.
CREATE FUNCTION current_system() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT system_identifier FROM pg_control_system()
$$;

-- The transactions that have ended: those below `ends`, but for the running ones.
CREATE FUNCTION present_transactions(OUT ends bigint, OUT running bigint[]) LANGUAGE sql STABLE AS $$
    SELECT pg_snapshot_xmax(s)::text::bigint, ARRAY(SELECT x::text::bigint FROM pg_snapshot_xip(s) x)
    FROM pg_current_snapshot() s
$$;

CREATE TABLE incarnation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    system bigint NOT NULL,
    timeline bigint NOT NULL,
    epoch bigint NOT NULL CHECK (epoch >= 0 AND epoch < 8192)
);
INSERT INTO incarnation (system, timeline, epoch) VALUES (current_system(), current_timeline(), 0);

-- Begins an epoch. Every number that another process or a person remembers goes on above all that the lost part of the
-- history may have given: sequences (channels, connections, revocations), the version of the control data, and the
-- revision of everything that has one. So no number of a lost change is given to another change, and a gateway that
-- reads on under the number of a lost channel does not find another channel.
-- Leases and sessions predate the epoch, so they are truncated, as in a crash of the server.
-- The day's number keeps a database that was put back from an old backup from an epoch that was used since the backup.
-- Transactions of another cluster count from the beginning: the statistics read on from here (m0002_statistics).
CREATE FUNCTION begin_epoch() RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    begun bigint;
    revised regclass;
    is_elsewhere boolean := (SELECT system <> current_system() FROM incarnation);
BEGIN
    UPDATE incarnation
    SET system = current_system(), timeline = current_timeline(),
        epoch = greatest(epoch + 1, current_date - date '2026-01-01')
    RETURNING epoch INTO begun;
    PERFORM setval(c.oid::regclass, begun << 40) FROM pg_class c
    WHERE c.relkind = 'S' AND c.relnamespace = 'public'::regnamespace;
    UPDATE control_version SET version = greatest(version + 1, begun << 40);
    FOR revised IN
        SELECT a.attrelid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
        WHERE c.relnamespace = 'public'::regnamespace AND a.attname = 'revision' AND NOT a.attisdropped
    LOOP
        EXECUTE format('UPDATE %s SET revision = greatest(revision + 1, $1 << 40)', revised) USING begun;
    END LOOP;
    TRUNCATE gateway, lease_book, device_session;
    IF is_elsewhere THEN
        INSERT INTO statistics_reading (epoch, read_below, unread)
        SELECT begun, p.ends, p.running FROM present_transactions() p;
    END IF;
    RETURN begun;
END $$;

-- The revision of what is created in the present epoch.
CREATE FUNCTION first_revision() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (epoch << 40) + 1 FROM incarnation
$$;

-- Called by every writer when it connects: a promoted standby and a database in another cluster start a new epoch, an
-- old primary is refused.
CREATE FUNCTION enter_incarnation() RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    server_timeline bigint := current_timeline();
    entered incarnation;
BEGIN
    PERFORM FROM incarnation WHERE system <> current_system() OR timeline < server_timeline FOR UPDATE;
    IF FOUND THEN PERFORM begin_epoch(); END IF;
    SELECT * INTO entered FROM incarnation;
    IF entered.timeline > server_timeline THEN
        RAISE EXCEPTION 'this server is on timeline %, but timeline % has been served: it is an old primary',
            server_timeline, entered.timeline;
    END IF;
    RETURN entered.epoch;
END $$;

-- ---- control data --------------------------------------------------------------------------------------------------

CREATE TABLE control_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version bigint NOT NULL
);
INSERT INTO control_version (version) VALUES (1);

CREATE TABLE instance (
    instance_id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    is_enabled boolean NOT NULL,
    validator_url text NOT NULL,
    -- Not null: the tenant is asked through an mPaaS mobile gateway (spec V2).
    gateway_app_id text,
    gateway_workspace_id text,
    gateway_wraps_body boolean,
    CHECK (num_nulls(gateway_app_id, gateway_workspace_id, gateway_wraps_body) IN (0, 3)),
    verdict_lifetime_ms bigint NOT NULL CHECK (verdict_lifetime_ms >= 0),
    requires_signature boolean NOT NULL DEFAULT false,
    binds_devices boolean NOT NULL DEFAULT false,
    -- Every bind takes ownership, not only one that the app asked for (spec D8).
    latest_connection_owns boolean NOT NULL DEFAULT false,
    session_units integer NOT NULL DEFAULT 100 CHECK (session_units BETWEEN 100 AND 4096),
    -- Of calls without a key; null: no limit.
    requests_per_second integer CHECK (requests_per_second > 0),
    pushes_per_day bigint CHECK (pushes_per_day > 0),
    -- At most what the partitions are kept for, less the day by which a key outlives its oplog (spec D11, D18).
    retention interval NOT NULL CHECK (retention BETWEEN interval '1 day' AND interval '30 days'),
    -- Rises with every change and with every epoch: a person who changes a version that is no longer the newest is
    -- refused.
    revision bigint NOT NULL DEFAULT 1
);

CREATE TABLE sync_configuration (
    instance_id text COLLATE "C" NOT NULL REFERENCES instance,
    biz_type text COLLATE "C" NOT NULL,
    description text NOT NULL,
    -- ChannelKind: kinds with the same target differ by 2.
    kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 3),
    is_multi_device boolean NOT NULL,
    is_persistent boolean NOT NULL,
    threshold integer NOT NULL CHECK (threshold BETWEEN 0 AND 1000),
    checks_session boolean NOT NULL,
    is_online boolean NOT NULL,
    is_immediate boolean NOT NULL,
    -- Null: the instance's; 0: a verdict is asked before every batch (spec V5).
    verdict_lifetime_ms bigint CHECK (verdict_lifetime_ms >= 0),
    revision bigint NOT NULL DEFAULT 1,
    -- Oplogs from before belong to a deleted configuration of the same Sync ID: as if they were not there (spec D17).
    data_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- As people write them (SubscriptionText); empty: no filter, nothing declared.
    filter text NOT NULL DEFAULT '',
    attributes text NOT NULL DEFAULT '',
    parameters text NOT NULL DEFAULT '',
    -- It has, or once had, a filter: what its receivers were sent is kept account of (m0007_subscription).
    is_filtered boolean NOT NULL DEFAULT false,
    PRIMARY KEY (instance_id, biz_type)
);

-- Keys of instances. A secret is sealed with a master key, which the database never sees (reliability SEC16).
CREATE TABLE app_key (
    key_id text COLLATE "C" PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL REFERENCES instance,
    purpose smallint NOT NULL CHECK (purpose BETWEEN 1 AND 3),
    sealed_secret bytea NOT NULL,
    requests_per_second integer CHECK (requests_per_second > 0),
    pushes_per_day bigint CHECK (pushes_per_day > 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX app_key_by_instance ON app_key (instance_id);

-- Nonces of signed requests, until their timestamps are refused anyway: good once per key (spec H9).
CREATE TABLE request_nonce (
    key_id text COLLATE "C" NOT NULL,
    nonce bytea NOT NULL,
    claim bytea NOT NULL, -- of the request that used it: a repeated claim finds its own
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, nonce)
);
CREATE INDEX request_nonce_by_end ON request_nonce (expires_at);

-- Pushes of a day that processes have taken, to spend them.
CREATE TABLE push_quota (
    instance_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL, -- empty: calls without a key
    day date NOT NULL,
    taken bigint NOT NULL,
    granted bigint NOT NULL, -- of that, to whoever asked last
    PRIMARY KEY (instance_id, key_id, day)
);

-- A tenant has ended sessions: verdicts asked before do not count. Kept longer than any verdict lives.
CREATE TABLE session_revocation (
    instance_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    session_digest bytea NOT NULL, -- empty: every session of the user
    revoked_at timestamptz NOT NULL,
    -- Tells the later of two, whatever the clock did between them.
    revocation_number bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (instance_id, user_id, session_digest)
);
CREATE INDEX session_revocation_by_time ON session_revocation (revoked_at);

-- Device ids that belong to a secret (reliability SEC9).
CREATE TABLE device_secret (
    instance_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    secret_digest bytea NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance_id, device_id)
);

-- ---- operation records ---------------------------------------------------------------------------------------------

-- What people did: append-only and chained by hashes (spec C9, reliability SEC15). No tier may change or remove a row,
-- and every row is made by record_operation.
CREATE TABLE operation_record (
    number bigint PRIMARY KEY,
    -- Never before that of an earlier number, whatever the clock did.
    recorded_at timestamptz NOT NULL,
    -- As one_line has them, like the subject: no line break is in any text of a record.
    actor text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL, -- the address or host that the actor came from; empty: not known
    action smallint NOT NULL, -- OperationAction
    instance_id text COLLATE "C" NOT NULL, -- empty: of no instance
    subject text COLLATE "C" NOT NULL, -- Sync ID, key, user, device …
    -- JSON; null where there is none.
    before text,
    after text,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL
);
-- One for each combination of filters: each finds its newest rows without looking at others. They have the negative of
-- the number, so that the planner cannot take the primary key instead, which is in order too, but has to look at every
-- row where few pass the filters.
CREATE INDEX operation_record_by_time ON operation_record (recorded_at, number);
CREATE INDEX operation_record_i ON operation_record (instance_id, (-number));
CREATE INDEX operation_record_u ON operation_record (actor, (-number));
CREATE INDEX operation_record_a ON operation_record (action, (-number));
CREATE INDEX operation_record_iu ON operation_record (instance_id, actor, (-number));
CREATE INDEX operation_record_ia ON operation_record (instance_id, action, (-number));
CREATE INDEX operation_record_ua ON operation_record (actor, action, (-number));
CREATE INDEX operation_record_iua ON operation_record (instance_id, actor, action, (-number));

-- The end of the chain. Whoever records holds it to the commit: so numbers have no gap and rise in commit order.
CREATE TABLE record_head (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    number bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    hash bytea NOT NULL
);
INSERT INTO record_head (number, recorded_at, hash) VALUES (0, '-infinity', decode(repeat('00', 32), 'hex'));

-- A text as JSON has it between its quotes: line breaks and control characters become escapes.
CREATE FUNCTION one_line(in_text text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(to_json(in_text)::text, 2, length(to_json(in_text)::text) - 2)
$$;

-- A part of what is hashed, its length before it, so that no two lists of parts read alike.
CREATE FUNCTION chain_part(in_part bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT int4send(octet_length(in_part)) || in_part
$$;

-- Appends a record. An actor has two parts, a name and where it came from. It is the last thing that a transaction
-- locks, so nobody waits for anybody in a circle. A connection that has named an instance records of that one alone.
CREATE FUNCTION record_operation(
    in_actor text[], in_action smallint, in_instance text, in_subject text, in_before jsonb, in_after jsonb
) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    head record_head;
    made operation_record;
BEGIN
    IF coalesce(current_setting('mss.instance', true), '') NOT IN ('', in_instance) THEN
        RAISE EXCEPTION 'this connection works for another instance' USING ERRCODE = 'insufficient_privilege';
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
    -- As RecordChain.swift has it.
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

-- Contents of pushes that people made, each beside its record: kept for a time of their own, longer than the oplog, and
-- not for ever like the record, which has the SHA-256. A recall of the push erases the content here too.
CREATE TABLE record_content (
    number bigint PRIMARY KEY REFERENCES operation_record,
    instance_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL, -- empty: a global push
    third_message_id text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    is_binary boolean NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX record_content_by_push ON record_content (instance_id, third_message_id);
CREATE INDEX record_content_by_time ON record_content (recorded_at);

-- Records a push that a person is about to make, with its content.
CREATE FUNCTION record_push(
    in_actor text[], in_action smallint, in_instance text, in_biz_type text, in_target text, in_third_message_id text,
    in_payload bytea, in_is_binary boolean, in_after jsonb
) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
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

-- Erases contents whose time has ended, so many at the most; their records stay.
CREATE FUNCTION forget_record_contents(in_days integer, in_limit integer) RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    DELETE FROM record_content d WHERE d.number = ANY (ARRAY(
        SELECT c.number FROM record_content c WHERE c.recorded_at < clock_timestamp() - make_interval(days => in_days)
        ORDER BY c.recorded_at LIMIT in_limit FOR UPDATE SKIP LOCKED))
$$;

-- Records that pass the filters (null: no filter), between two numbers, both left out. Times never fall from one number
-- to the next, so a time is a bound of numbers too. `in_recent_max`: only so many of the newest in all; null: all.
--
-- The planner does not know how many rows lie between two numbers, and would now and then sort all that pass the
-- filters. Without sorts and bitmaps it can only walk the index of the filters, as far as the limit.
CREATE FUNCTION list_records(
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

-- ---- changes of control data ---------------------------------------------------------------------------------------

-- Each is a function that also makes the next version and the record: nobody can change control data without. They
-- answer with the version in which the change is in force and whether they changed anything; the version is null when
-- the change was refused, and `is_stale` says that the reason is another change meanwhile.

-- An instance as records show it.
CREATE FUNCTION instance_members(in_row instance) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'instanceId', in_row.instance_id, 'name', in_row.name, 'enabled', in_row.is_enabled,
        'validatorUrl', in_row.validator_url,
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

-- A configuration as records show it.
CREATE FUNCTION configuration_members(in_row sync_configuration) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'instanceId', in_row.instance_id, 'bizType', in_row.biz_type, 'description', in_row.description,
        'scope', CASE WHEN in_row.kind > 1 THEN 'global' ELSE 'appointed' END,
        'target', CASE WHEN in_row.kind IN (0, 2) THEN 'user' ELSE 'device' END,
        'multiDevice', in_row.is_multi_device, 'persistent', in_row.is_persistent,
        'repush', CASE WHEN in_row.threshold = 0 THEN to_jsonb('all'::text) ELSE to_jsonb(in_row.threshold) END,
        'checkSession', in_row.checks_session,
        'verdictLifetimeSeconds', trim_scale(in_row.verdict_lifetime_ms::numeric / 1000),
        'immediate', in_row.is_immediate, 'online', in_row.is_online, 'revision', in_row.revision)
        || CASE WHEN concat(in_row.filter, in_row.attributes, in_row.parameters) = '' THEN '{}'::jsonb
            ELSE jsonb_build_object(
                'filter', in_row.filter, 'attributes', in_row.attributes, 'parameters', in_row.parameters) END
$$;

-- A key as records show it: never with its secret, sealed or not.
CREATE FUNCTION key_members(in_row app_key) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'keyId', in_row.key_id, 'purpose', (ARRAY['backend', 'device', 'callout'])[in_row.purpose],
        'requestsPerSecond', in_row.requests_per_second, 'pushesPerDay', in_row.pushes_per_day)
$$;

-- Ends a change that was made.
CREATE FUNCTION finish_change(
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

-- Creates an instance (`create`), changes one that still has the revision given (`modify`), or whichever is needed
-- (`put`). A modification that comes twice finds its own effect.
CREATE FUNCTION change_instance(in_actor text[], in_way text, in_row instance)
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
        pushes_per_day = in_row.pushes_per_day, retention = in_row.retention, revision = held.revision + 1
    WHERE n.instance_id = held.instance_id RETURNING n.* INTO STRICT in_row;
    RETURN QUERY SELECT * FROM finish_change(
        in_actor, action, held.instance_id, held.instance_id, instance_members(held), instance_members(in_row));
END $$;

-- The same for a configuration, whose target (user or device) cannot be changed. Its push scope can: oplogs that are
-- stored stay in the channel of the scope that they were pushed with (spec C4).
CREATE FUNCTION change_configuration(in_actor text[], in_way text, in_row sync_configuration)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    known bigint := in_row.revision;
    held sync_configuration;
    rest sync_configuration;
    action integer := 2;
BEGIN
    IF in_way <> 'modify' AND EXISTS (SELECT FROM instance n WHERE n.instance_id = in_row.instance_id) THEN
        in_row.revision := first_revision();
        in_row.data_since := clock_timestamp();
        in_row.is_filtered := in_row.filter <> '';
        INSERT INTO sync_configuration VALUES (in_row.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN QUERY SELECT * FROM finish_change(
                in_actor, 1, in_row.instance_id, in_row.biz_type, NULL, configuration_members(in_row));
            RETURN;
        END IF;
    END IF;
    SELECT * INTO held FROM sync_configuration f
    WHERE f.instance_id = in_row.instance_id AND f.biz_type = in_row.biz_type FOR NO KEY UPDATE;
    IF NOT FOUND OR in_way = 'create' OR held.kind % 2 <> in_row.kind % 2 THEN
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
        action := CASE WHEN in_row.is_online THEN 4 ELSE 5 END;
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

-- Sets a configuration online or offline, whatever its revision.
CREATE FUNCTION switch_configuration(in_actor text[], in_instance text, in_biz_type text, in_is_online boolean)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    switched sync_configuration;
BEGIN
    SELECT * INTO switched FROM sync_configuration f
    WHERE f.instance_id = in_instance AND f.biz_type = in_biz_type FOR NO KEY UPDATE;
    switched.is_online := in_is_online;
    RETURN QUERY SELECT * FROM change_configuration(in_actor, 'modify', switched);
END $$;

-- Deletes a configuration that is offline. Its oplogs and keys no longer count from then on, their space goes with
-- retention, and its channels' ids go on rising should it be created again (spec D17).
CREATE FUNCTION delete_configuration(in_actor text[], in_instance text, in_biz_type text)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
            in_actor, 3, in_instance, in_biz_type, configuration_members(gone), NULL);
    END IF;
END $$;

-- Adds a key where the instance has fewer than `in_most` live ones of the purpose. The instance is held to the commit:
-- of two that each want to add the last one, the second counts after the first has committed.
CREATE FUNCTION create_key(in_actor text[], in_row app_key, in_most bigint)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    in_row.created_at := clock_timestamp();
    PERFORM FROM instance n WHERE n.instance_id = in_row.instance_id FOR NO KEY UPDATE;
    IF FOUND AND in_most > (
        SELECT count(*) FROM app_key k WHERE k.instance_id = in_row.instance_id AND k.purpose = in_row.purpose
    ) THEN
        INSERT INTO app_key VALUES (in_row.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN QUERY SELECT * FROM finish_change(
                in_actor, 30, in_row.instance_id, in_row.key_id, NULL, key_members(in_row));
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT NULL::bigint, false, false;
END $$;

-- Ends a key.
CREATE FUNCTION revoke_key(in_actor text[], in_instance text, in_key text)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    gone app_key;
BEGIN
    DELETE FROM app_key k WHERE k.instance_id = in_instance AND k.key_id = in_key RETURNING k.* INTO gone;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
    ELSE
        RETURN QUERY SELECT * FROM finish_change(in_actor, 31, in_instance, in_key, key_members(gone), NULL);
    END IF;
END $$;

-- Puts another sealing of the same secret in a key's place.
CREATE FUNCTION reseal_key(in_actor text[], in_instance text, in_key text, in_sealed bytea)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    UPDATE app_key k SET sealed_secret = in_sealed WHERE k.instance_id = in_instance AND k.key_id = in_key;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
    ELSE
        RETURN QUERY SELECT * FROM finish_change(in_actor, 32, in_instance, in_key, NULL, NULL);
    END IF;
END $$;

-- Forgets the secret of a device id: the next device that connects with the id gets it.
CREATE FUNCTION release_device(in_actor text[], in_instance text, in_device text)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM device_secret d WHERE d.instance_id = in_instance AND d.device_id = in_device;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
    ELSE
        RETURN QUERY SELECT * FROM finish_change(in_actor, 40, in_instance, in_device, NULL, NULL);
    END IF;
END $$;

-- ---- channels and oplogs -------------------------------------------------------------------------------------------

-- head moves only under the row's lock, held to commit: so id order = commit order = answer order (design §1).
CREATE TABLE channel (
    channel_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    target text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    head bigint NOT NULL DEFAULT 0,
    UNIQUE (instance_id, kind, target, biz_type)
) WITH (fillfactor = 80);

-- Weekly partitions: retention is a DROP. Uniqueness of (channel, id) and of (channel, third_message_id) is kept by
-- append_oplogs under the channel's lock; the index on the 64-bit hash finds a repeat, the text decides.
CREATE TABLE oplog (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    third_message_id text COLLATE "C" NOT NULL,
    third_message_hash bigint NOT NULL,
    payload bytea, -- null: non-persistent, it goes out live or not at all; or recalled
    is_binary boolean NOT NULL,
    operating_system smallint NOT NULL,
    minimum_version text NOT NULL,
    maximum_version text NOT NULL,
    -- The slots of device ids that it is for, of 10,000 (DeviceShare).
    share_start smallint NOT NULL,
    share_size smallint NOT NULL,
    valid_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    recalls bigint, -- a tombstone: the oplog that was recalled
    recalled_at timestamptz, -- the payload is gone since then
    attributes text, -- what filters look at (SubscriptionValues); null: nothing
    -- The transaction that stored the row, by which the sweep and the statistics find commits since their last look,
    -- however late they are.
    written_by bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    -- Null: persistent. True: no writer has recorded whether a device took it, and a repeat goes out under the same id.
    awaits_outcome boolean
) PARTITION BY RANGE (created_at);
CREATE INDEX oplog_by_id ON oplog (channel_id, oplog_id);
CREATE INDEX oplog_tombstone ON oplog (channel_id, oplog_id) WHERE recalls IS NOT NULL;
CREATE INDEX oplog_by_third_message ON oplog (channel_id, third_message_hash);
-- The notifier reads the last seconds. Rows arrive in their order, so a block range index is almost free.
CREATE INDEX oplog_by_time ON oplog USING brin (created_at) WITH (pages_per_range = 16, autosummarize = on);
-- The sweep and the statistics read the last transactions, every few seconds and in their order. A look at a block
-- range index takes longer the larger the week is (0.2 s for 600 million rows). This index takes some 70 bytes of WAL
-- and 12 bytes on disk for a push; its rows go to its last page.
CREATE INDEX oplog_by_transaction ON oplog (written_by);

-- The name of the partition for a week, which begins on a Monday (UTC).
CREATE FUNCTION oplog_partition(in_monday timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'oplog_' || to_char(in_monday AT TIME ZONE 'UTC', 'YYYYMMDD')
$$;

-- The Monday (UTC) that begins the present week, or the week so many weeks from now.
CREATE FUNCTION oplog_week(in_weeks integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT (date_trunc('week', now() AT TIME ZONE 'UTC') + make_interval(weeks => in_weeks)) AT TIME ZONE 'UTC'
$$;

-- Makes the partitions from last week to `weeks_ahead` weeks from now.
--
-- No push waits for this. A table is created alone and then attached: ATTACH PARTITION takes SHARE UPDATE EXCLUSIVE on
-- oplog, which conflicts neither with reads nor with writes, and no statement of a push queues behind a session that
-- waits for it. CREATE TABLE ... PARTITION OF would take ACCESS EXCLUSIVE, behind which every push queues. The new
-- table is empty, so that attaching it scans nothing and needs no CHECK that matches the bounds. What this function
-- waits for itself, other maintenance of oplog or an ACCESS EXCLUSIVE lock, it gives up on soon: its caller comes
-- again.
CREATE FUNCTION ensure_oplog_partitions(weeks_ahead integer) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    monday timestamptz;
    partition text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('ensure_oplog_partitions'));
    FOR week IN -1..weeks_ahead LOOP
        monday := oplog_week(week);
        partition := oplog_partition(monday);
        CONTINUE WHEN to_regclass(partition) IS NOT NULL;
        EXECUTE format('CREATE TABLE %I (LIKE oplog INCLUDING ALL)', partition);
        EXECUTE format(
            'ALTER TABLE oplog ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', partition, monday,
            monday + interval '7 days');
    END LOOP;
END $$;
SELECT ensure_oplog_partitions(3);

-- Whether pushes of the present week have a partition to go to.
CREATE FUNCTION has_present_oplog_partition() RETURNS boolean LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_inherits i
        WHERE i.inhparent = 'oplog'::regclass AND i.inhrelid = to_regclass(oplog_partition(oplog_week(0))))
$$;

-- Partitions whose last oplog is older than the longest retention and the day by which keys outlive it (spec D18).
-- They are detached concurrently, which no push waits for, and then dropped. Detaching so takes the table's owner and
-- no function can do it: mss_oplog_keeper owns this one table for that, its partitions belong to mss_owner like the
-- rest.
CREATE VIEW ended_oplog_partition AS
    SELECT c.relname AS name, i.inhrelid IS NOT NULL AS is_attached, coalesce(i.inhdetachpending, false) AS is_detaching
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname ~ '^oplog_\d{8}$'
        AND to_date(substr(c.relname, 7), 'YYYYMMDD') + 7 < now() AT TIME ZONE 'UTC' - interval '31 days';

-- Drops a partition that has ended and is detached; anything else stays. No push looks at it any more.
CREATE FUNCTION drop_ended_oplog_partition(in_name text) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '200ms' AS $$
BEGIN
    IF EXISTS (SELECT FROM ended_oplog_partition e WHERE e.name = in_name AND NOT e.is_attached) THEN
        EXECUTE format('DROP TABLE %I', in_name);
    END IF;
END $$;

-- Of these channels, the places (from 1 on) of those that another transaction holds locked now. A writer whose batch
-- was refused for a lock asks this, so that rows of a channel that is held do not hold up the rows of the others.
CREATE FUNCTION find_locked_channels(in_instance text[], in_kind smallint[], in_biz_type text[], in_target text[])
RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
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

-- Appends a batch and answers every row, in one transaction and one round trip. Configurations, channels and rows stand
-- in arrays of their own; a channel names its configuration and a row its channel by their places there, from 1 on.
-- Channels come in one order, that of their addresses, from every writer; `in_rows` says how many ids each draws and
-- `in_number` which of them a row has. No two rows have the same channel and key.
--
-- The configuration is asked here, not where the call came in: what is in force now decides (spec D17). A row that no
-- online configuration takes has no effect and no answer.
--
-- Lock first, look later: drawing the ids takes the channel's lock, and the statement after all locks sees what earlier
-- holders committed. The same logic in one statement would look with the snapshot from before the wait and store a
-- duplicate. Ids are drawn for rows that repeat a key too and are then nobody's: so a duplicate answer is as durable as
-- the first.
CREATE FUNCTION append_oplogs(
    in_instance text[], in_kind smallint[], in_biz_type text[],
    in_configuration integer[], in_target text[], in_rows integer[],
    in_channel integer[], in_number integer[], in_third_message_id text[], in_third_message_hash bigint[],
    in_payload bytea[], in_is_binary boolean[], in_operating_system smallint[], in_minimum_version text[],
    in_maximum_version text[], in_share_start smallint[], in_share_size smallint[], in_valid_until_ms bigint[],
    in_attributes text[]
) RETURNS TABLE (
    ordinal bigint, channel bigint, id bigint, is_duplicate boolean, head_before bigint,
    valid_until_ms bigint, created_at_ms bigint, is_persistent boolean, is_single_device boolean,
    checks_session boolean, is_immediate boolean, awaits_outcome boolean, written_at_ms bigint
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    first_id bigint;
    written_at timestamptz;
    rule record;
    data_since timestamptz[];
    retention interval[];
    persistent boolean[];
    single_device boolean[];
    checked boolean[];
    immediate boolean[];
    k integer;
    channel_id bigint;
    head bigint;
    channels bigint[];
    heads bigint[];
BEGIN
    SELECT epoch << 40 INTO STRICT first_id FROM incarnation;
    FOR n IN 1..cardinality(in_kind) LOOP
        SELECT f.*, i.retention INTO rule
        FROM sync_configuration f JOIN instance i ON i.instance_id = f.instance_id
        WHERE f.instance_id = in_instance[n] AND f.biz_type = in_biz_type[n] AND f.kind = in_kind[n]
            AND f.is_online AND i.is_enabled;
        CONTINUE WHEN NOT FOUND;
        data_since[n] := rule.data_since;
        retention[n] := rule.retention;
        persistent[n] := rule.is_persistent;
        single_device[n] := rule.kind = 0 AND NOT rule.is_multi_device;
        checked[n] := rule.checks_session;
        immediate[n] := rule.is_immediate;
    END LOOP;

    FOR n IN 1..cardinality(in_configuration) LOOP
        k := in_configuration[n];
        CONTINUE WHEN data_since[k] IS NULL;
        LOOP
            UPDATE channel c SET head = greatest(c.head, first_id) + in_rows[n]
            WHERE c.instance_id = in_instance[k] AND c.kind = in_kind[k] AND c.target = in_target[n]
                AND c.biz_type = in_biz_type[k]
            RETURNING c.channel_id, c.head INTO channel_id, head;
            EXIT WHEN FOUND;
            INSERT INTO channel (instance_id, kind, target, biz_type)
            VALUES (in_instance[k], in_kind[k], in_target[n], in_biz_type[k]) ON CONFLICT DO NOTHING;
        END LOOP;
        channels[n] := channel_id;
        heads[n] := head - in_rows[n];
    END LOOP;
    written_at := clock_timestamp();

    RETURN QUERY
    WITH located AS MATERIALIZED (
        SELECT r.*, channels[r.place] AS channel_id, in_configuration[r.place] AS k,
            heads[r.place] + r.number AS new_id,
            -- Never before its configuration, by a clock that was set back: then it would be nobody's.
            greatest(written_at, data_since[in_configuration[r.place]]) AS created_at,
            -- Partitions of weeks to come are not looked at; what a clock that was a day ahead has stored is found.
            (SELECT o.oplog_id FROM oplog o
             WHERE o.channel_id = channels[r.place] AND o.third_message_hash = r.third_message_hash
                AND o.third_message_id = r.third_message_id AND o.created_at >= data_since[in_configuration[r.place]]
                AND o.created_at <= greatest(written_at, data_since[in_configuration[r.place]]) + interval '1 day'
             LIMIT 1) AS known_id,
            -- LEAST passes over nulls.
            least(
                CASE WHEN r.until_ms > 0 THEN to_timestamp(r.until_ms / 1000.0) END,
                written_at + retention[in_configuration[r.place]]) AS valid_until
        FROM unnest(
            in_channel, in_number, in_third_message_id, in_third_message_hash, in_payload, in_is_binary,
            in_operating_system, in_minimum_version, in_maximum_version, in_share_start, in_share_size,
            in_valid_until_ms, in_attributes
        ) WITH ORDINALITY AS r (
            place, number, third_message_id, third_message_hash, payload, is_binary, operating_system, minimum_version,
            maximum_version, share_start, share_size, until_ms, attributes, ordinal)
        WHERE channels[r.place] IS NOT NULL
    ), stored AS (
        INSERT INTO oplog (
            channel_id, oplog_id, third_message_id, third_message_hash, payload, is_binary, operating_system,
            minimum_version, maximum_version, share_start, share_size, valid_until, created_at, attributes,
            awaits_outcome)
        SELECT l.channel_id, l.new_id, l.third_message_id, l.third_message_hash,
            CASE WHEN persistent[l.k] THEN l.payload END, l.is_binary, l.operating_system, l.minimum_version,
            l.maximum_version, l.share_start, l.share_size, l.valid_until, l.created_at, nullif(l.attributes, ''),
            CASE WHEN NOT persistent[l.k] THEN true END
        FROM located l WHERE l.known_id IS NULL
    )
    SELECT l.ordinal, l.channel_id, coalesce(l.known_id, l.new_id), l.known_id IS NOT NULL, heads[l.place],
        floor(extract(epoch FROM l.valid_until) * 1000)::bigint,
        floor(extract(epoch FROM l.created_at) * 1000)::bigint, persistent[l.k], single_device[l.k], checked[l.k],
        immediate[l.k],
        CASE WHEN l.known_id IS NULL THEN NOT persistent[l.k]
            ELSE EXISTS (
                SELECT FROM oplog o WHERE o.channel_id = l.channel_id AND o.oplog_id = l.known_id
                    AND o.awaits_outcome AND o.recalled_at IS NULL) END,
        floor(extract(epoch FROM written_at) * 1000)::bigint
    FROM located l;
END $$;

-- Records that the outcome of non-persistent pushes is known. None of them is older than `in_first_ms`, so only the
-- partitions from then on are looked at.
CREATE FUNCTION record_live_outcomes(in_channel bigint[], in_id bigint[], in_first_ms bigint)
RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
    UPDATE oplog o SET awaits_outcome = false
    FROM unnest(in_channel, in_id) AS i (channel_id, oplog_id)
    WHERE o.channel_id = i.channel_id AND o.oplog_id = i.oplog_id AND o.awaits_outcome
        AND o.created_at >= to_timestamp(in_first_ms / 1000.0)
$$;

-- Recalls an oplog: its payload is gone, and a tombstone that names it follows in the channel (spec H7). No row: there
-- is no such oplog. Recalling again changes nothing and answers as before. Only the connection's own instance is looked
-- at: the second belt below does not bind the owner, with whose rights this runs. `in_person` is for the operation
-- records; null: a backend asks.
CREATE FUNCTION recall_oplog(
    in_instance text, in_kind smallint, in_target text, in_biz_type text, in_third_message_id text, in_hash bigint,
    in_person text[]
) RETURNS TABLE (
    channel bigint, id bigint, tombstone bigint, head_before bigint, operating_system smallint, minimum_version text,
    maximum_version text, share_start smallint, share_size smallint, valid_until_ms bigint, created_at_ms bigint
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
        -- Whom the original was for gets the tombstone; it is kept as long as an oplog can be.
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
                in_person, 11::smallint, in_instance, in_biz_type, NULL, jsonb_build_object(
                    'target', in_target, 'thirdMsgId', in_third_message_id, 'oplogId', original.oplog_id));
        END IF;
    ELSE
        SELECT o.* INTO mark FROM oplog o
        WHERE o.channel_id = original.channel_id AND o.oplog_id > original.oplog_id AND o.recalls = original.oplog_id;
        -- As durable as the first answer.
        UPDATE channel c SET head = c.head WHERE c.channel_id = original.channel_id;
    END IF;
    RETURN QUERY SELECT original.channel_id, original.oplog_id, mark.oplog_id, found_channel.head,
        original.operating_system, original.minimum_version, original.maximum_version, original.share_start,
        original.share_size, floor(extract(epoch FROM mark.valid_until) * 1000)::bigint,
        floor(extract(epoch FROM mark.created_at) * 1000)::bigint;
END $$;

-- ---- staged roll-outs of global pushes -----------------------------------------------------------------------------

-- A global push that widens from a small share of the devices to everybody. Each stage is an oplog for the slots that
-- it adds, made in the transaction that moves this row on: so exactly once, whoever widens, and however often.
CREATE TABLE rollout (
    instance_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    third_message_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL CHECK (kind IN (2, 3)),
    payload bytea, -- null: no further stage is made
    is_binary boolean NOT NULL,
    operating_system smallint NOT NULL,
    minimum_version text NOT NULL,
    maximum_version text NOT NULL,
    valid_until_ms bigint NOT NULL, -- 0: each stage as long as the instance keeps it
    share_start smallint NOT NULL, -- the first slot of the first stage
    stages integer[] NOT NULL, -- slots that have it after each stage, rising to 10,000
    stage_ids text[] COLLATE "C" NOT NULL,
    stage_hashes bigint[] NOT NULL,
    oplog_ids bigint[] NOT NULL DEFAULT '{}', -- of the stages made
    told_stages integer NOT NULL DEFAULT 0, -- of those, the first that gateways know of
    state smallint NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 4), -- RolloutState
    stage_interval interval, -- null: people widen it
    due_at timestamptz, -- of the next stage; null: not by time, or not now
    wait_left interval, -- while it is paused: what was left until then
    started_by text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text COLLATE "C" NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance_id, biz_type, third_message_id),
    FOREIGN KEY (instance_id, biz_type) REFERENCES sync_configuration ON DELETE CASCADE
);
CREATE INDEX rollout_by_time ON rollout (instance_id, started_at);
CREATE INDEX rollout_due ON rollout (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX rollout_untold ON rollout (changed_at) WHERE told_stages < cardinality(oplog_ids);

-- A roll-out as records show it: never its payload.
CREATE FUNCTION rollout_members(in_row rollout) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'thirdMsgId', in_row.third_message_id, 'stage', cardinality(in_row.oplog_ids),
        'state', (ARRAY['running', 'paused', 'stopped', 'completed'])[in_row.state],
        'percent', (SELECT jsonb_agg(trim_scale(s / 100.0)) FROM unnest(in_row.stages) s),
        'intervalSeconds', extract(epoch FROM in_row.stage_interval)::bigint,
        'osType', (ARRAY['iOS', 'Android'])[nullif(in_row.operating_system, 0)],
        'appMinVersion', nullif(in_row.minimum_version, ''), 'appMaxVersion', nullif(in_row.maximum_version, ''),
        'validTimeEnd', nullif(in_row.valid_until_ms, 0))
$$;

-- Puts a changed roll-out, whose row is held, in place of what it was, and records it.
CREATE FUNCTION keep_rollout(in_actor text[], in_action integer, in_held rollout, in_row rollout) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE rollout r SET payload = CASE WHEN in_row.state IN (1, 2) THEN in_row.payload END,
        oplog_ids = in_row.oplog_ids, state = in_row.state, due_at = in_row.due_at, wait_left = in_row.wait_left,
        changed_by = in_actor[1], changed_at = clock_timestamp()
    WHERE r.instance_id = in_held.instance_id AND r.biz_type = in_held.biz_type
        AND r.third_message_id = in_held.third_message_id;
    IF in_action = 60 THEN
        -- Under the id of the first stage: stopping the roll-out recalls that, too.
        PERFORM record_push(
            in_actor, in_action::smallint, in_held.instance_id, in_held.biz_type, '', in_held.stage_ids[1],
            in_held.payload, in_held.is_binary, rollout_members(in_row));
    ELSE
        PERFORM record_operation(
            in_actor, in_action::smallint, in_held.instance_id, in_held.biz_type, rollout_members(in_held),
            rollout_members(in_row));
    END IF;
END $$;

-- Makes the next stage of a roll-out whose row is held. The words of the answers are those of RolloutOutcome.
CREATE FUNCTION make_rollout_stage(in_actor text[], in_action integer, in_held rollout) RETURNS text
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
        ARRAY[(in_held.stages[stage] - share_before)::smallint], ARRAY[in_held.valid_until_ms], ARRAY['']);
    IF NOT FOUND THEN RETURN 'offline'; END IF;
    -- A stage of this roll-out cannot be there already: the row would say so.
    IF made.is_duplicate THEN RETURN 'taken'; END IF;
    moved.oplog_ids := in_held.oplog_ids || made.id;
    IF stage = cardinality(in_held.stages) THEN
        moved.state := 4;
        moved.due_at := NULL;
    ELSE
        moved.due_at := clock_timestamp() + in_held.stage_interval;
    END IF;
    PERFORM keep_rollout(in_actor, in_action, in_held, moved);
    RETURN 'done';
END $$;

-- Starts a roll-out with its first stage; what was started under the id already stays as it is. Like every function
-- here that an operator's connection calls, it looks at the connection's own instance alone.
CREATE FUNCTION start_rollout(
    in_actor text[], in_instance text, in_biz_type text, in_third_message_id text, in_payload bytea,
    in_is_binary boolean, in_operating_system smallint, in_minimum_version text, in_maximum_version text,
    in_valid_until_ms bigint, in_share_start smallint, in_stages bigint[], in_stage_ids text[],
    in_stage_hashes bigint[], in_interval_s bigint
) RETURNS text LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held rollout;
    outcome text;
BEGIN
    -- Of two that come first at once one waits here for the other's commit, and finds its effect.
    INSERT INTO rollout (
        instance_id, biz_type, third_message_id, kind, payload, is_binary, operating_system, minimum_version,
        maximum_version, valid_until_ms, share_start, stages, stage_ids, stage_hashes, stage_interval, started_by,
        changed_by)
    SELECT f.instance_id, f.biz_type, in_third_message_id, f.kind, in_payload, in_is_binary, in_operating_system,
        in_minimum_version, in_maximum_version, in_valid_until_ms, in_share_start, in_stages::integer[], in_stage_ids,
        in_stage_hashes, make_interval(secs => nullif(in_interval_s, 0)), in_actor[1], in_actor[1]
    FROM sync_configuration f
    WHERE f.instance_id = in_instance AND f.biz_type = in_biz_type AND f.kind > 1
        AND in_instance = current_setting('mss.instance', true)
    ON CONFLICT DO NOTHING RETURNING * INTO held;
    IF NOT FOUND THEN
        -- The answer to a repeat is as durable as the first one.
        UPDATE rollout r SET changed_by = r.changed_by
        WHERE r.instance_id = in_instance AND r.biz_type = in_biz_type
            AND r.third_message_id = in_third_message_id AND in_instance = current_setting('mss.instance', true);
        RETURN CASE WHEN FOUND THEN 'unchanged' ELSE 'offline' END;
    END IF;
    outcome := make_rollout_stage(in_actor, 60, held);
    IF outcome <> 'done' THEN
        DELETE FROM rollout r WHERE r.instance_id = held.instance_id AND r.biz_type = held.biz_type
            AND r.third_message_id = held.third_message_id;
    END IF;
    RETURN outcome;
END $$;

-- Makes the stage of this number (`widen`), one that was made is not made again; or has the roll-out pause or resume.
-- Stages made go on reaching their devices while it is paused.
CREATE FUNCTION change_rollout(
    in_actor text[], in_way text, in_instance text, in_biz_type text, in_third_message_id text, in_stage integer
) RETURNS text LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
        OR in_way = 'pause' AND held.state = 2 OR in_way = 'resume' AND held.state = 1
    THEN
        -- The answer to a repeat is as durable as the first one.
        UPDATE rollout r SET changed_by = r.changed_by
        WHERE r.instance_id = in_instance AND r.biz_type = in_biz_type AND r.third_message_id = in_third_message_id;
        RETURN 'unchanged';
    END IF;
    IF held.state = 3 THEN RETURN 'stopped'; END IF;
    IF held.state = 4 THEN RETURN 'completed'; END IF;
    IF in_way = 'widen' THEN
        IF held.state = 2 THEN RETURN 'paused'; END IF;
        IF in_stage > cardinality(held.oplog_ids) + 1 THEN RETURN 'ahead'; END IF;
        RETURN make_rollout_stage(in_actor, 61, held);
    END IF;
    moved := held;
    IF in_way = 'pause' THEN
        moved.state := 2;
        moved.wait_left := greatest(held.due_at - clock_timestamp(), interval '0');
        IF held.due_at IS NULL THEN moved.wait_left := NULL; END IF;
        moved.due_at := NULL;
    ELSE
        moved.state := 1;
        moved.due_at := clock_timestamp() + held.wait_left;
        moved.wait_left := NULL;
    END IF;
    PERFORM keep_rollout(in_actor, CASE WHEN in_way = 'pause' THEN 62 ELSE 63 END, held, moved);
    RETURN 'done';
END $$;

-- Ends a roll-out for good, also one that is complete, and recalls every stage: whoever has not stored it never gets
-- it. The answer's first row has no recall; stopping again answers as before.
CREATE FUNCTION stop_rollout(in_actor text[], in_instance text, in_biz_type text, in_third_message_id text)
RETURNS TABLE (
    outcome text, channel bigint, id bigint, tombstone bigint, head_before bigint, operating_system smallint,
    minimum_version text, maximum_version text, share_start smallint, share_size smallint, valid_until_ms bigint,
    created_at_ms bigint
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
    ELSIF held.state = 3 THEN
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
        moved.state := 3;
        moved.due_at := NULL;
        moved.wait_left := NULL;
        PERFORM keep_rollout(in_actor, 64, held, moved);
    END IF;
END $$;

-- Makes one stage whose time has come, of whichever instance: every writer asks once a second, and none waits for
-- another. One whose validity has ended stops, one whose stage's id is another push's pauses. One whose configuration
-- is offline, or not global any more, waits. False: nothing to do.
CREATE FUNCTION widen_due_rollout() RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held rollout;
    moved rollout;
    outcome text;
BEGIN
    SELECT r.* INTO held FROM rollout r
    JOIN sync_configuration f ON f.instance_id = r.instance_id AND f.biz_type = r.biz_type AND f.is_online
        AND f.kind = r.kind
    JOIN instance n ON n.instance_id = r.instance_id AND n.is_enabled
    WHERE r.due_at <= clock_timestamp() ORDER BY r.due_at LIMIT 1
    FOR UPDATE OF r SKIP LOCKED;
    IF NOT FOUND THEN RETURN false; END IF;
    outcome := make_rollout_stage(ARRAY['schedule', ''], 61, held);
    IF outcome IN ('expired', 'taken') THEN
        moved := held;
        moved.state := CASE WHEN outcome = 'expired' THEN 3 ELSE 2 END;
        moved.due_at := NULL;
        moved.wait_left := CASE WHEN outcome = 'taken' THEN interval '0' END;
        PERFORM keep_rollout(ARRAY['schedule', ''], CASE WHEN outcome = 'expired' THEN 64 ELSE 62 END, held, moved);
    END IF;
    RETURN outcome <> 'offline';
END $$;

-- Ends roll-outs whose validity has ended, and forgets those that ended longer ago than statistics keep the record of
-- their pushes; the operation records stay.
CREATE FUNCTION forget_ended_rollouts() RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held rollout;
    moved rollout;
BEGIN
    FOR held IN
        SELECT * FROM rollout r
        WHERE r.state IN (1, 2) AND r.valid_until_ms <> 0
            AND to_timestamp(r.valid_until_ms / 1000.0) <= clock_timestamp()
        ORDER BY r.instance_id, r.biz_type, r.third_message_id FOR UPDATE SKIP LOCKED
    LOOP
        moved := held;
        moved.state := 3;
        moved.due_at := NULL;
        moved.wait_left := NULL;
        PERFORM keep_rollout(ARRAY['schedule', ''], 64, held, moved);
    END LOOP;
    DELETE FROM rollout d WHERE d.ctid = ANY (ARRAY(
        SELECT r.ctid FROM rollout r
        WHERE r.state IN (3, 4) AND (r.changed_at < clock_timestamp() - interval '35 days'
                AND r.told_stages >= cardinality(r.oplog_ids)
            -- Its oplogs are gone by then.
            OR r.changed_at < clock_timestamp() - interval '70 days')
        ORDER BY r.instance_id, r.biz_type, r.third_message_id LIMIT 1000 FOR UPDATE SKIP LOCKED));
END $$;

-- ---- receivers -----------------------------------------------------------------------------------------------------

-- How far a receiver has stored a channel; it never falls. Device and store are empty where the channel has one
-- sync point for its user or device (spec §1, Receiver). The user is empty but for global data for users: on a device
-- that several people share, each of them receives it.
CREATE TABLE sync_point (
    channel_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    store_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL DEFAULT '',
    oplog_id bigint NOT NULL,
    -- The largest id that the store itself has acknowledged or claimed; oplog_id also counts what was passed over. A
    -- store that claims less is an older copy of itself.
    acknowledged_id bigint NOT NULL DEFAULT 0,
    -- Of a simple device: how often the batch that begins with this oplog went out again (reliability R7).
    resent_id bigint NOT NULL DEFAULT 0,
    repeats smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (channel_id, device_id, store_id, user_id)
) WITH (fillfactor = 80);

-- What one device is to be given again, below its sync point (spec D3); acknowledged by its number.
CREATE TABLE reread (
    reread_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL, -- who was bound when it died; matters for global data for users
    oplog_id bigint NOT NULL,
    reason text NOT NULL,
    actor text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at timestamptz
);
CREATE INDEX reread_by_device ON reread (device_id) WHERE done_at IS NULL;
CREATE INDEX reread_by_oplog ON reread (channel_id, oplog_id, device_id);

-- Leases and sessions are unlogged: after a crash of the server they are empty, the gateways find their lease gone
-- and announce every session again (design §4).
CREATE UNLOGGED TABLE gateway (
    gateway_id text COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL,
    -- Rises with each renewal. A writer that has seen the same number for a lease's length by its own clock removes the
    -- row, which ends the lease (LeaseWatch). The database's clock has no part in it, so a jump of it ends no lease.
    renewals bigint NOT NULL DEFAULT 0,
    control_version bigint NOT NULL, -- of the control data that its sessions go by
    sessions bigint NOT NULL -- open on it, as it said last
) WITH (fillfactor = 50);

-- Whether every lease that may be held is in `gateway`. Gone with it after a crash or failover: a writer then opens the
-- book anew, and calls it complete once it has stood for a lease's length by the writer's clock. A new database has
-- given no lease.
CREATE UNLOGGED TABLE lease_book (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    book_id uuid NOT NULL DEFAULT gen_random_uuid(),
    is_complete boolean NOT NULL
);
INSERT INTO lease_book (is_complete) VALUES (true);

CREATE UNLOGGED TABLE device_session (
    instance_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    store_id text COLLATE "C" NOT NULL,
    -- The device's own number of the connection, rising within the store; 0: it does not count.
    device_connection bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL, -- empty: no user bound
    gateway_id text COLLATE "C" NOT NULL,
    gateway_epoch bigint NOT NULL,
    -- The gateway's own number of the connection, rising.
    connection_number bigint NOT NULL,
    registration_number bigint NOT NULL, -- likewise of what was asked last
    connection_epoch bigint NOT NULL,
    operating_system smallint NOT NULL,
    app_version text NOT NULL,
    slot smallint NOT NULL, -- of the device id (DeviceSlot)
    is_foreground boolean NOT NULL,
    verdict_until timestamptz NOT NULL,
    -- Business types that the device does not take now.
    suspended text[] COLLATE "C" NOT NULL,
    -- When this connection was registered, or announced under a new lease.
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance_id, device_id)
) WITH (fillfactor = 80);
CREATE INDEX device_session_by_user ON device_session (instance_id, user_id) WHERE user_id <> '';
CREATE INDEX device_session_by_gateway ON device_session (gateway_id);

-- Draws the epochs of leases, connections and owners; logged, so they rise over every crash.
CREATE SEQUENCE presence_epoch AS bigint;

-- Which device receives a user's single-device channels; a disconnected owner stays owner (spec D8). Only this device
-- moves the user's one sync point of such a channel.
CREATE TABLE owner (
    instance_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    -- Drawn when an app's bind changes the owner. A device that becomes the owner again after a failover has the epoch
    -- that it was given before. So it rises with every change of this row.
    ownership_epoch bigint NOT NULL,
    PRIMARY KEY (instance_id, user_id)
) WITH (fillfactor = 80);

-- Renews a lease, or takes a new one when the epoch asked for is not the one on record. Sessions of the lease before
-- are gone with it. With a new one come the version of the control data in force, as nobody who changed that has waited
-- for a gateway without a lease, and the snapshot from which the gateway's sweeps begin: its sessions are registered
-- after it.
CREATE FUNCTION renew_lease(in_gateway text, in_epoch bigint, in_control_version bigint, in_sessions bigint)
RETURNS TABLE (
    held_epoch bigint, version_in_force bigint, live_gateways bigint, all_sessions bigint, present_snapshot text
) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    new_epoch bigint;
    found_version bigint;
BEGIN
    UPDATE gateway SET renewals = renewals + 1, control_version = in_control_version, sessions = in_sessions
    WHERE gateway_id = in_gateway AND epoch = in_epoch;
    IF FOUND THEN
        RETURN QUERY SELECT in_epoch, 0::bigint, count(*), sum(g.sessions)::bigint, '' FROM gateway g;
        RETURN;
    END IF;
    -- Waits for a change that is being made: either whoever made it then finds this lease, or the lease is told of it.
    SELECT version INTO STRICT found_version FROM control_version FOR SHARE;
    new_epoch := nextval('presence_epoch');
    INSERT INTO gateway (gateway_id, epoch, control_version, sessions)
    VALUES (in_gateway, new_epoch, in_control_version, in_sessions)
    ON CONFLICT (gateway_id) DO UPDATE SET epoch = excluded.epoch, renewals = 0,
        control_version = excluded.control_version, sessions = excluded.sessions;
    DELETE FROM device_session WHERE gateway_id = in_gateway AND gateway_epoch <> new_epoch;
    RETURN QUERY SELECT new_epoch, found_version, 0::bigint, 0::bigint, pg_current_snapshot()::text;
END $$;

-- Whether the device id belongs to the secret with this digest; the first secret that is shown gets it. No digest, no
-- id (reliability SEC9).
CREATE FUNCTION holds_device(in_instance text, in_device text, in_digest bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF in_digest = '' THEN RETURN false; END IF;
    -- Of two that come first at once one waits here for the other's commit, and sees it below.
    INSERT INTO device_secret (instance_id, device_id, secret_digest) VALUES (in_instance, in_device, in_digest)
    ON CONFLICT DO NOTHING;
    RETURN EXISTS (
        SELECT FROM device_secret d
        WHERE d.instance_id = in_instance AND d.device_id = in_device AND d.secret_digest = in_digest);
END $$;

-- Registers a connection (epoch 0), or announces one again. Of two connections of one store the device's own numbers
-- say which is newer. Where they do not, a rising connection epoch decides, not arrival: the newest wins. A command may
-- come twice and late: among those of one gateway its numbers decide, so that no connection is superseded by itself or
-- by one before it, and none goes back to an earlier bind. Epoch 0 in the answer: a newer one exists, or the secret is
-- wrong, and nothing changed. Ownership moves only with a valid verdict where a single-device configuration has the
-- session check on (spec D16): the gateway sees to that, and this function is the second belt.
CREATE FUNCTION register_session(
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
SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    new_epoch bigint;
    held device_session;
    found_owner owner;
    becomes_owner boolean := false;
    is_same_gateway boolean;
    is_newer boolean; -- by the device's own number; null: it does not decide
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
    -- Of two that come first at once one waits at the INSERT for the other's commit, and finds its row in the next
    -- turn.
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
            UPDATE device_session s SET
                store_id = in_store, device_connection = in_device_connection,
                user_id = in_user, gateway_id = in_gateway, gateway_epoch = in_gateway_epoch,
                connection_number = in_connection_number, registration_number = in_registration_number,
                connection_epoch = new_epoch, operating_system = in_operating_system, app_version = in_app_version,
                slot = in_slot, is_foreground = in_is_foreground, verdict_until = clock_timestamp() + lasts,
                suspended = in_suspended,
                registered_at = CASE WHEN s.connection_epoch = new_epoch THEN s.registered_at
                    ELSE clock_timestamp() END
            WHERE s.instance_id = in_instance AND s.device_id = in_device;
            EXIT;
        END IF;
        INSERT INTO device_session (
            instance_id, device_id, store_id, device_connection, user_id, gateway_id, gateway_epoch, connection_number,
            registration_number, connection_epoch, operating_system, app_version, slot, is_foreground, verdict_until,
            suspended)
        VALUES (
            in_instance, in_device, in_store, in_device_connection, in_user, in_gateway, in_gateway_epoch,
            in_connection_number, in_registration_number, new_epoch, in_operating_system, in_app_version, in_slot,
            in_is_foreground, clock_timestamp() + lasts, in_suspended)
        ON CONFLICT (instance_id, device_id) DO NOTHING;
        EXIT WHEN FOUND;
    END LOOP;
    SELECT w.* INTO found_owner FROM owner w WHERE w.instance_id = in_instance AND w.user_id = in_user;
    -- Nobody was given an epoch above the last one that was drawn.
    IF in_user <> '' AND found_owner.device_id IS DISTINCT FROM in_device
        AND (in_takes_ownership
            OR in_ownership_epoch > coalesce(found_owner.ownership_epoch, 0)
                AND in_ownership_epoch <= (SELECT last_value FROM presence_epoch))
        AND (in_verdict_ms > 0 OR NOT EXISTS (
            SELECT FROM sync_configuration f JOIN instance n ON n.instance_id = f.instance_id
            WHERE f.instance_id = in_instance AND f.kind = 0 AND NOT f.is_multi_device AND f.checks_session
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

-- ---- rights of the tiers -------------------------------------------------------------------------------------------

-- A new owner needs CREATE on the schema at the moment when it becomes one (PostgreSQL manual, ALTER TABLE).
GRANT CREATE ON SCHEMA public TO mss_oplog_keeper;
ALTER TABLE oplog OWNER TO mss_oplog_keeper;
REVOKE CREATE ON SCHEMA public FROM mss_oplog_keeper;

GRANT EXECUTE ON FUNCTION enter_incarnation TO mss_writer, mss_statistics, mss_console;
GRANT EXECUTE ON FUNCTION append_oplogs, record_live_outcomes, find_locked_channels, renew_lease, register_session,
    ensure_oplog_partitions, has_present_oplog_partition, drop_ended_oplog_partition TO mss_writer;
GRANT SELECT ON oplog, ended_oplog_partition, channel, gateway, owner, instance, sync_configuration, control_version,
    device_session, sync_point, reread TO mss_writer;
GRANT EXECUTE ON FUNCTION change_instance, change_configuration, switch_configuration, delete_configuration,
    create_key, revoke_key, reseal_key, release_device TO mss_writer;
GRANT EXECUTE ON FUNCTION record_operation TO mss_writer, mss_operator, mss_console;
GRANT EXECUTE ON FUNCTION record_push TO mss_operator;
GRANT EXECUTE ON FUNCTION forget_record_contents TO mss_writer;
GRANT SELECT ON record_content TO mss_console;
GRANT EXECUTE ON FUNCTION list_records, one_line TO mss_writer, mss_console;
GRANT SELECT ON operation_record, record_head TO mss_writer, mss_console;
GRANT UPDATE (is_foreground, verdict_until), DELETE ON device_session TO mss_writer;
GRANT DELETE ON gateway TO mss_writer;
GRANT SELECT, INSERT, UPDATE (is_complete) ON lease_book TO mss_writer;
GRANT INSERT, UPDATE (oplog_id, acknowledged_id, resent_id, repeats) ON sync_point TO mss_writer;
GRANT UPDATE (done_at) ON reread TO mss_writer;
GRANT SELECT ON app_key TO mss_writer;
GRANT SELECT, INSERT, UPDATE (claim), DELETE ON request_nonce TO mss_writer;
GRANT SELECT, INSERT, UPDATE (taken, granted), DELETE ON push_quota TO mss_writer;
GRANT SELECT, DELETE ON session_revocation TO mss_writer;

GRANT EXECUTE ON FUNCTION widen_due_rollout, forget_ended_rollouts TO mss_writer;
GRANT SELECT, UPDATE (told_stages) ON rollout TO mss_writer;

GRANT EXECUTE ON FUNCTION recall_oplog, start_rollout, change_rollout, stop_rollout TO mss_operator;
GRANT SELECT ON rollout, oplog, channel, gateway, lease_book, owner, instance, sync_configuration, device_session,
    sync_point, reread TO mss_operator;
GRANT INSERT ON reread TO mss_operator;
GRANT SELECT, INSERT, UPDATE (revoked_at, revocation_number) ON session_revocation TO mss_operator;

-- ---- the second belt -----------------------------------------------------------------------------------------------

-- mss_operator answers questions about one instance: its connection names that (mss.instance) and then meets no other's
-- rows, even where a statement forgets its condition; before it has named one it meets none. What is keyed by channel
-- has no instance of its own: its key is found through `channel`. The owner's functions and the writer work for many
-- instances in one statement. For them it is the constant true, which the planner drops: a condition that it has to
-- guess at makes it join in another order, on the way of every push.
CREATE FUNCTION belt(in_table regclass) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', in_table);
    EXECUTE format('CREATE POLICY every_instance ON %s TO mss_owner, mss_writer USING (true)', in_table);
    EXECUTE format(
        'CREATE POLICY one_instance ON %s TO mss_operator
            USING (instance_id = current_setting(''mss.instance'', true))', in_table);
END $$;
SELECT belt(t) FROM unnest(
    '{instance,sync_configuration,app_key,push_quota,session_revocation,device_secret,channel,
        device_session,owner,operation_record,record_content,rollout}'::regclass[]) t;
-- The console looks at the records of all instances; which of them a user sees is its own rule.
CREATE POLICY every_record ON operation_record TO mss_console USING (true);
CREATE POLICY every_content ON record_content TO mss_console USING (true);
