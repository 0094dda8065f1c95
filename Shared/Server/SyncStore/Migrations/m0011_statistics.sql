-- The delivery record of each oplog at each device, and the figures that are counted from it. The statistics aggregator
-- is the only writer, through functions.
--
-- The statistics read from the table oplog that a push was accepted; gateways send the rest as facts. Facts may come in
-- any order and repeatedly. Each row of the record keeps minima of times and maxima of counts, and each figure is
-- always the sum of the rows' contributions. A change of a row adds the difference to the figures in the same
-- transaction. Only one transaction changes rows at a time, so each contribution counts exactly once (S1).
--
-- The codes of statistics_target.kind and statistics_channel.kind are those of ChannelKind (m0002_instances).
--
-- Codes of statistics_delivery.skip_reason (SkipReason):
--   1 operatingSystem   2 version       3 expired              4 notStored          5 share

-- ---- targets and channels of the figures ----------------------------------------------------------------------------

-- Users and devices, under numbers that keep large indexes small.
CREATE TABLE statistics_target (
    target_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL CHECK (kind IN (0 /* user */, 1 /* device */)),
    target text COLLATE "C" NOT NULL,
    UNIQUE (instance_id, kind, target)
);

-- Channels with a push or a fact, copied from the writer's table.
CREATE TABLE statistics_channel (
    channel_id bigint PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    target_id bigint -- null: a global channel
);

-- ---- the delivery record, for 35 days -------------------------------------------------------------------------------

-- Whether an oplog is a push (S2). A non-persistent one is a push only after its first hand-out, and never without one.
CREATE FUNCTION counts_as_push(
    is_live boolean, accepted_at timestamptz, handed_out_at timestamptz, confirmed_at timestamptz
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT accepted_at IS NOT NULL AND (NOT is_live OR handed_out_at IS NOT NULL OR confirmed_at IS NOT NULL)
$$;

-- When each event first happened to an oplog; null: it has not happened, as far as is known.
CREATE TABLE statistics_oplog (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    noted_at timestamptz NOT NULL, -- the earliest of these times and of all facts about it
    target_id bigint, -- the channel's
    accepted_at timestamptz,
    first_handed_out_at timestamptz,
    first_confirmed_at timestamptz,
    is_live boolean NOT NULL, -- non-persistent
    counts boolean NOT NULL GENERATED ALWAYS AS (
        counts_as_push(is_live, accepted_at, first_handed_out_at, first_confirmed_at)) STORED,
    PRIMARY KEY (channel_id, oplog_id)
) WITH (fillfactor = 85);
-- In the order of a push list, so that a page is read from the index without sorting, however many pushes there are.
CREATE INDEX statistics_oplog_by_target ON statistics_oplog (target_id, noted_at, channel_id, oplog_id) WHERE counts;
CREATE INDEX statistics_oplog_by_age ON statistics_oplog (noted_at);

-- The events of an oplog at one device; the delivery trace reads this record (H7). Null: it has not happened.
CREATE TABLE statistics_delivery (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    handed_out_at timestamptz,
    target_id bigint, -- of a global push: the user or device that pulled it
    confirmed_at timestamptz,
    skipped_at timestamptz,
    dead_at timestamptz,
    attempts integer NOT NULL, -- hand-outs to the app that the device has reported
    skip_reason smallint,
    operating_system smallint NOT NULL, -- at the first hand-out, like the version
    app_version text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    dead_user text COLLATE "C" NOT NULL, -- the bound user when it became a dead letter
    PRIMARY KEY (channel_id, oplog_id, device_id)
) WITH (fillfactor = 85);
CREATE INDEX statistics_delivery_by_target ON statistics_delivery (target_id, channel_id, oplog_id)
    WHERE target_id IS NOT NULL;
CREATE INDEX statistics_delivery_dead ON statistics_delivery (dead_at) WHERE dead_at IS NOT NULL;

-- Global pushes that a user or device has pulled: from then on they count for that target (S2). Rows are never undone.
CREATE TABLE statistics_pull (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    target_id bigint NOT NULL,
    handed_out_at timestamptz NOT NULL,
    confirmed_at timestamptz,
    PRIMARY KEY (channel_id, oplog_id, target_id)
) WITH (fillfactor = 85);
CREATE INDEX statistics_pull_by_target ON statistics_pull (target_id, handed_out_at, channel_id, oplog_id);

-- Ranges of a backlog that a threshold discarded for one device (D10).
CREATE TABLE statistics_discarded (
    channel_id bigint NOT NULL,
    upto bigint NOT NULL,
    after bigint NOT NULL,
    discarded_at timestamptz NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (channel_id, device_id, upto)
);
CREATE INDEX statistics_discarded_by_age ON statistics_discarded (discarded_at);

-- ---- figures; days are in UTC ---------------------------------------------------------------------------------------

-- Pushes by the day of their acceptance, the arrivals of those pushes, and dead letters by the day on which they became
-- dead, unless the device confirmed them afterwards. For 400 days.
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
    operating_system smallint NOT NULL, -- 0: a system that no push can name
    app_version text COLLATE "C" NOT NULL, -- empty: not comparable
    handed_out bigint NOT NULL,
    confirmed bigint NOT NULL,
    PRIMARY KEY (instance_id, day, biz_type, operating_system, app_version)
) WITH (fillfactor = 50);
CREATE INDEX statistics_day_traits_by_age ON statistics_day_traits (day);

-- Pushes and arrivals of one user or device: appointed ones by the day of their acceptance, global ones by the day on
-- which they were pulled. For 35 days.
CREATE TABLE statistics_target_day (
    target_id bigint NOT NULL,
    day date NOT NULL,
    pushes integer NOT NULL,
    arrivals integer NOT NULL,
    PRIMARY KEY (target_id, day)
) WITH (fillfactor = 85);
CREATE INDEX statistics_target_day_by_age ON statistics_target_day (day);

-- Pushes by the minute and by the hour of their acceptance: a month is read by hours. For 35 days.
CREATE TABLE statistics_accepted (
    instance_id text COLLATE "C" NOT NULL,
    span_minutes smallint NOT NULL, -- 1 or 60
    begins_at timestamptz NOT NULL,
    pushes bigint NOT NULL,
    PRIMARY KEY (instance_id, span_minutes, begins_at)
) WITH (fillfactor = 50);
CREATE INDEX statistics_accepted_by_age ON statistics_accepted (begins_at);

-- Arrivals by the minute and the hour of the first confirmation and by the time since the acceptance: bucket 0 is below
-- 1 ms, the next buckets end at 2, 5, 10, 20, 50 … ms, the last has no end (SyncModel.ArrivalTimes). For 35 days.
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

-- Acceptances and facts from before this time are in the figures. With several aggregators, it is the time of the most
-- advanced one.
CREATE TABLE statistics_progress (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    folded_until timestamptz NOT NULL
) WITH (fillfactor = 50);
INSERT INTO statistics_progress (folded_until) VALUES ('epoch');

-- The transactions that have ended: all below `ends`, except those in `running`.
CREATE FUNCTION present_transactions(OUT ends bigint, OUT running bigint[]) LANGUAGE sql STABLE AS $$
    SELECT pg_snapshot_xmax(s)::text::bigint, ARRAY(SELECT x::text::bigint FROM pg_snapshot_xip(s) x)
    FROM pg_current_snapshot() s
$$;

-- The transactions whose oplogs are in the figures, as a snapshot of the database. The transaction that counts the
-- oplogs also moves the snapshot, so none is left out, over crashes of aggregators and servers and however late a
-- commit is. An oplog that a fold of facts has counted has a row already, so it is not counted again. An oplog that is
-- dropped with its week before an aggregator has read it, more than 31 days later, is not counted.
--
-- The snapshot stays right after a crash or a promotion. A transaction in the snapshot had ended before, so its commit
-- record lies before the record of the snapshot: a standby that has the snapshot also has those oplogs, and a standby
-- without the last oplogs has no snapshot with them. The server draws transaction numbers above all recorded ones, so
-- it gives none again that the snapshot has.
--
-- A cluster that got the database from a dump counts transactions anew. begin_epoch adds a row for it; the ids of its
-- oplogs start with its epoch. The aggregator first reads the dump's oplogs that the former row does not cover, then
-- deletes that row.
CREATE TABLE statistics_reading (
    epoch bigint PRIMARY KEY, -- the first epoch of the cluster
    read_below bigint NOT NULL, -- every transaction below this is in the figures,
    unread bigint[] NOT NULL -- except these
) WITH (fillfactor = 50);
-- The table of oplogs is empty now, so the figures cover everything that is stored from here on.
INSERT INTO statistics_reading (epoch, read_below, unread)
SELECT i.epoch, p.ends, p.running FROM incarnation i, present_transactions() p;

-- ---- rights of the tiers, and row-level security --------------------------------------------------------------------

GRANT SELECT, UPDATE (folded_until) ON statistics_progress TO mss_statistics;
GRANT SELECT ON statistics_delivery TO mss_writer, mss_operator, mss_console;
GRANT SELECT ON statistics_discarded TO mss_operator;
GRANT SELECT ON statistics_target, statistics_channel, statistics_oplog, statistics_pull, statistics_target_day,
    statistics_day, statistics_day_traits, statistics_accepted, statistics_arrival, statistics_connected,
    statistics_progress TO mss_console;
-- The console reads the figures of all instances; its own rules decide which of them an operator sees.
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
