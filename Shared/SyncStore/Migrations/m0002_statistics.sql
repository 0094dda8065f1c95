-- The record of what became of each oplog at each device, and the figures that are counted from it. The statistics
-- aggregator is the only writer, by the functions of m0003_statistics_fold and the last one below.
--
-- That a push was accepted is read off the table oplog; the rest comes as facts from the gateways. Facts may come in
-- any order and repeatedly. Each row of the record keeps minima of times and maxima of counts, and each figure is
-- always the sum of what the rows contribute: whoever changes a row adds the difference that this makes, in the same
-- transaction, one of which changes rows at a time, so nothing is counted twice or not at all (spec S1).

-- Until the end of the transaction nobody else folds or forgets: it may read a row and write it later, without locks
-- and conflicts row by row. As a fold takes some tens of microseconds for each push, there is time for turns, but a
-- turn may take longer than a session waits for a row.
CREATE FUNCTION lock_statistics() RETURNS void LANGUAGE sql VOLATILE SET lock_timeout = '4s' AS $$
    SELECT pg_advisory_xact_lock(hashtext('statistics'))
$$;

-- ---- whose figures they are ----------------------------------------------------------------------------------------

-- Users (kind 0) and devices (kind 1), under numbers that fit into large indexes.
CREATE TABLE statistics_target (
    target_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL CHECK (kind IN (0, 1)),
    target text COLLATE "C" NOT NULL,
    UNIQUE (instance_id, kind, target)
);

-- Channels that got a push or of which facts came, as the writer's table names them.
CREATE TABLE statistics_channel (
    channel_id bigint PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    target_id bigint -- null: everybody's
);

-- ---- the record, for 35 days ---------------------------------------------------------------------------------------

-- Whether an oplog is a push (spec S2). One that is not stored is none before it has gone out, for good if that was to
-- nobody.
CREATE FUNCTION counts_as_push(
    is_live boolean, accepted_at timestamptz, handed_out_at timestamptz, confirmed_at timestamptz
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT accepted_at IS NOT NULL AND (NOT is_live OR handed_out_at IS NOT NULL OR confirmed_at IS NOT NULL)
$$;

-- When each happened to an oplog first; null: it has not, as far as is known.
CREATE TABLE statistics_oplog (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    noted_at timestamptz NOT NULL, -- the earliest of them and of all facts about it
    target_id bigint, -- the channel's
    accepted_at timestamptz,
    first_handed_out_at timestamptz,
    first_confirmed_at timestamptz,
    is_live boolean NOT NULL, -- not stored: went out at once or not at all
    counts boolean NOT NULL GENERATED ALWAYS AS (
        counts_as_push(is_live, accepted_at, first_handed_out_at, first_confirmed_at)) STORED,
    PRIMARY KEY (channel_id, oplog_id)
) WITH (fillfactor = 85);
-- In the order of a push list, so that a page is read off it without sorting, however many pushes there are.
CREATE INDEX statistics_oplog_by_target ON statistics_oplog (target_id, noted_at, channel_id, oplog_id) WHERE counts;
CREATE INDEX statistics_oplog_by_age ON statistics_oplog (noted_at);

-- What became of an oplog at one device: the record that the trace reads (spec H7). Null: it has not happened.
CREATE TABLE statistics_delivery (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    handed_out_at timestamptz,
    target_id bigint, -- of a global push: for whom that was
    confirmed_at timestamptz,
    skipped_at timestamptz,
    dead_at timestamptz,
    attempts integer NOT NULL, -- how often the app was given it, as far as the device told
    skip_reason smallint,
    operating_system smallint NOT NULL, -- when it was first handed out, like the version
    app_version text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    dead_user text COLLATE "C" NOT NULL, -- who was bound when it died
    PRIMARY KEY (channel_id, oplog_id, device_id)
) WITH (fillfactor = 85);
CREATE INDEX statistics_delivery_by_target ON statistics_delivery (target_id, channel_id, oplog_id)
    WHERE target_id IS NOT NULL;
CREATE INDEX statistics_delivery_dead ON statistics_delivery (dead_at) WHERE dead_at IS NOT NULL;

-- Global pushes that a user or device has pulled: from then on it is one of theirs (spec S2). Never taken back.
CREATE TABLE statistics_pull (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    target_id bigint NOT NULL,
    handed_out_at timestamptz NOT NULL,
    confirmed_at timestamptz,
    PRIMARY KEY (channel_id, oplog_id, target_id)
) WITH (fillfactor = 85);
CREATE INDEX statistics_pull_by_target ON statistics_pull (target_id, handed_out_at, channel_id, oplog_id);

-- Ranges of a backlog that a threshold passed over for one device (spec D10).
CREATE TABLE statistics_discarded (
    channel_id bigint NOT NULL,
    upto bigint NOT NULL,
    after bigint NOT NULL,
    discarded_at timestamptz NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (channel_id, device_id, upto)
);
CREATE INDEX statistics_discarded_by_age ON statistics_discarded (discarded_at);

-- ---- figures; days are UTC's ---------------------------------------------------------------------------------------

-- Pushes by the day they were accepted on, the arrivals of those pushes, and dead letters by the day of their death:
-- oplogs that a device was given up for, unless it confirmed them after all. For 400 days.
CREATE TABLE statistics_day (
    instance_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    day date NOT NULL,
    pushes bigint NOT NULL,
    arrivals bigint NOT NULL,
    dead_letters bigint NOT NULL,
    PRIMARY KEY (instance_id, day, biz_type)
) WITH (fillfactor = 50);
CREATE INDEX statistics_day_by_age ON statistics_day (day);

-- Hand-outs to devices by the day of the first one, and how many of them the apps have confirmed. For 400 days.
CREATE TABLE statistics_day_traits (
    instance_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    day date NOT NULL,
    operating_system smallint NOT NULL, -- 0: one that no push can name
    app_version text COLLATE "C" NOT NULL, -- empty: none that can be compared
    handed_out bigint NOT NULL,
    confirmed bigint NOT NULL,
    PRIMARY KEY (instance_id, day, biz_type, operating_system, app_version)
) WITH (fillfactor = 50);
CREATE INDEX statistics_day_traits_by_age ON statistics_day_traits (day);

-- Pushes and arrivals of one user or device: its own by the day they were accepted on, global ones by the day they were
-- pulled on. For 35 days.
CREATE TABLE statistics_target_day (
    target_id bigint NOT NULL,
    day date NOT NULL,
    pushes integer NOT NULL,
    arrivals integer NOT NULL,
    PRIMARY KEY (target_id, day)
) WITH (fillfactor = 85);
CREATE INDEX statistics_target_day_by_age ON statistics_target_day (day);

-- Pushes by the minute they were accepted in, and by the hour: a month is read by hours. For 35 days.
CREATE TABLE statistics_accepted (
    instance_id text COLLATE "C" NOT NULL,
    span_minutes smallint NOT NULL, -- 1 or 60
    begins_at timestamptz NOT NULL,
    pushes bigint NOT NULL,
    PRIMARY KEY (instance_id, span_minutes, begins_at)
) WITH (fillfactor = 50);
CREATE INDEX statistics_accepted_by_age ON statistics_accepted (begins_at);

-- Arrivals by the minute and the hour of the first confirmation and by the time since the push was accepted: bucket 0
-- is below 1 ms, the next ones end at 2, 5, 10, 20, 50 … ms, the last has no end (SyncModel.ArrivalTimes). For 35 days.
CREATE TABLE statistics_arrival (
    instance_id text COLLATE "C" NOT NULL,
    span_minutes smallint NOT NULL, -- 1 or 60
    begins_at timestamptz NOT NULL,
    bucket smallint NOT NULL,
    arrivals bigint NOT NULL,
    PRIMARY KEY (instance_id, span_minutes, begins_at, bucket)
) WITH (fillfactor = 50);
CREATE INDEX statistics_arrival_by_age ON statistics_arrival (begins_at);

-- Devices that one gateway had connected when a minute began. For 35 days.
CREATE TABLE statistics_connected (
    instance_id text COLLATE "C" NOT NULL,
    minute timestamptz NOT NULL,
    gateway_id text COLLATE "C" NOT NULL,
    devices integer NOT NULL,
    PRIMARY KEY (instance_id, minute, gateway_id)
);
CREATE INDEX statistics_connected_by_age ON statistics_connected (minute);

-- What was accepted and told before this moment is in the figures; with several aggregators, as far as the foremost
-- knows.
CREATE TABLE statistics_progress (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    folded_until timestamptz NOT NULL
) WITH (fillfactor = 50);
INSERT INTO statistics_progress (folded_until) VALUES ('epoch');

-- Which transactions' oplogs are in the figures: a snapshot of the database. It moves in the transaction that counts
-- the oplogs, so none is left out, over crashes of aggregators and servers and however late a commit is. An oplog that
-- a fold of facts has counted already has a row, so it is not counted again. What is dropped with its week before an
-- aggregator has read it, more than 31 days later, is not counted.
--
-- After a crash or a promotion it stays right. A transaction that it has had ended before it was taken, so its commit
-- record lies before the snapshot's own: a standby that has the snapshot has those oplogs too, and one without the last
-- oplogs lacks the snapshots that had them. The server draws numbers above all of which it has a record, so it gives
-- none again that the snapshot has.
--
-- A cluster that got the database from a dump counts transactions anew. begin_epoch adds a row for it, whose oplogs
-- have ids from its epoch on. Oplogs of the dump that the former row has not are read first; then that row goes.
CREATE TABLE statistics_reading (
    epoch bigint PRIMARY KEY, -- the cluster's first
    read_below bigint NOT NULL, -- every transaction below this is in the figures,
    unread bigint[] NOT NULL -- but for these
) WITH (fillfactor = 50);
-- The table of oplogs is empty now: what is stored from here on is everything.
INSERT INTO statistics_reading (epoch, read_below, unread)
SELECT i.epoch, p.ends, p.running FROM incarnation i, present_transactions() p;

-- ---- forgetting ----------------------------------------------------------------------------------------------------

-- Removes some of what has been kept for its time, the oldest first, and says how many rows: about `in_rows` of each
-- kind at the most, so that no fold waits for long. Each is found by an index. Figures stand: a sum does not change
-- when what was counted is forgotten.
CREATE FUNCTION forget_statistics(in_rows integer) RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    record_end timestamptz := now() - interval '35 days';
    day_end date := (now() AT TIME ZONE 'UTC' - interval '400 days')::date;
    channels bigint[];
    oplogs bigint[];
    kept record;
    gone bigint;
    total bigint := 0;
BEGIN
    PERFORM lock_statistics();
    SELECT array_agg(f.channel_id), array_agg(f.oplog_id) INTO channels, oplogs
    FROM (
        SELECT s.channel_id, s.oplog_id FROM statistics_oplog s WHERE s.noted_at < record_end
        ORDER BY s.noted_at LIMIT in_rows
    ) f;
    IF channels IS NOT NULL THEN
        DELETE FROM statistics_delivery WHERE ctid = ANY (ARRAY(
            SELECT d.ctid FROM unnest(channels, oplogs) AS i (channel_id, oplog_id)
            JOIN statistics_delivery d ON d.channel_id = i.channel_id AND d.oplog_id = i.oplog_id LIMIT 2 * in_rows));
        GET DIAGNOSTICS total = ROW_COUNT;
        DELETE FROM statistics_pull WHERE ctid = ANY (ARRAY(
            SELECT p.ctid FROM unnest(channels, oplogs) AS i (channel_id, oplog_id)
            JOIN statistics_pull p ON p.channel_id = i.channel_id AND p.oplog_id = i.oplog_id LIMIT 2 * in_rows));
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
        -- One with millions of devices stays until all of them are gone.
        DELETE FROM statistics_oplog WHERE ctid = ANY (ARRAY(
            SELECT s.ctid FROM unnest(channels, oplogs) AS i (channel_id, oplog_id)
            JOIN statistics_oplog s ON s.channel_id = i.channel_id AND s.oplog_id = i.oplog_id
            WHERE NOT EXISTS (
                SELECT FROM statistics_delivery d WHERE d.channel_id = i.channel_id AND d.oplog_id = i.oplog_id)
            AND NOT EXISTS (
                SELECT FROM statistics_pull p WHERE p.channel_id = i.channel_id AND p.oplog_id = i.oplog_id)));
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
    END IF;
    FOR kept IN
        SELECT * FROM (VALUES
            ('statistics_discarded', 'discarded_at', record_end::text),
            ('statistics_target_day', 'day', (record_end AT TIME ZONE 'UTC')::date::text),
            ('statistics_accepted', 'begins_at', record_end::text),
            ('statistics_arrival', 'begins_at', record_end::text),
            ('statistics_connected', 'minute', record_end::text),
            ('statistics_day', 'day', day_end::text), ('statistics_day_traits', 'day', day_end::text)
        ) AS k (name, age, ends)
    LOOP
        EXECUTE format(
            'DELETE FROM %1$I WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM %1$I WHERE %2$I < %3$L ORDER BY %2$I LIMIT %4$s))',
            kept.name, kept.age, kept.ends, in_rows);
        GET DIAGNOSTICS gone = ROW_COUNT;
        total := total + gone;
    END LOOP;
    RETURN total;
END $$;

-- ---- rights of the tiers, and the second belt (see m0001_oplog) ----------------------------------------------------

GRANT EXECUTE ON FUNCTION forget_statistics TO mss_statistics;
GRANT SELECT, UPDATE (folded_until) ON statistics_progress TO mss_statistics;
GRANT SELECT ON statistics_delivery TO mss_writer, mss_operator, mss_console;
GRANT SELECT ON statistics_discarded TO mss_operator;
GRANT SELECT ON statistics_target, statistics_channel, statistics_oplog, statistics_pull, statistics_target_day,
    statistics_day, statistics_day_traits, statistics_accepted, statistics_arrival, statistics_connected,
    statistics_progress TO mss_console;
-- The console shows all instances; who may see which of them is its own rule.
DO $$
DECLARE
    of_instance regclass;
BEGIN
    FOREACH of_instance IN ARRAY '{statistics_target,statistics_channel,statistics_day,statistics_day_traits,
        statistics_accepted,statistics_arrival,statistics_connected}'::regclass[]
    LOOP
        PERFORM belt(of_instance);
        EXECUTE format('ALTER POLICY every_instance ON %s TO mss_owner, mss_writer, mss_console', of_instance);
    END LOOP;
END $$;
