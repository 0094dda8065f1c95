-- Channels and oplogs. The codes of channel.kind are those of ChannelKind (m0002_instances).
--
-- Codes of oplog.operating_system (OperatingSystem):
--   0 every system   1 iOS              2 Android

-- `head` moves only under the row's lock, which is held until the commit. So id order, commit order and answer order
-- are the same (Design.md#from-push-to-oplog).
CREATE TABLE delivery.channel (
    channel_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance_id text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    target text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    head bigint NOT NULL DEFAULT 0,
    UNIQUE (instance_id, kind, target, biz_type)
) WITH (fillfactor = 80);
SELECT belt('channel');
GRANT SELECT ON channel TO mss_writer, mss_operator;

-- Weekly partitions: retention is a DROP. append_oplogs keeps (channel, id) and (channel, third_message_id) unique
-- under the channel's lock. The index on the 64-bit hash finds candidates for a repeat; the text decides.
CREATE TABLE delivery.oplog (
    channel_id bigint NOT NULL,
    oplog_id bigint NOT NULL,
    third_message_id text COLLATE "C" NOT NULL,
    third_message_hash bigint NOT NULL,
    payload bytea, -- null: non-persistent or recalled
    is_binary boolean NOT NULL,
    operating_system smallint NOT NULL,
    minimum_version text NOT NULL,
    maximum_version text NOT NULL,
    -- The slots of device ids that the oplog is for, of 10,000 (DeviceShare).
    share_start smallint NOT NULL,
    share_size smallint NOT NULL,
    valid_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    recalls bigint, -- of a tombstone: the recalled oplog
    recalled_at timestamptz, -- when the payload was erased
    attributes text, -- the values that filters read (SubscriptionValues); null: none
    conversation text COLLATE "C", -- null: none
    -- The transaction that stored the row. The sweep and the statistics find commits since their last read by it,
    -- however late a commit is.
    written_by bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    -- Null: persistent. True: no writer has recorded the outcome, and a repeat is sent again under the same id.
    awaits_outcome boolean
) PARTITION BY RANGE (created_at);
CREATE INDEX oplog_by_id ON delivery.oplog (channel_id, oplog_id);
CREATE INDEX oplog_tombstone ON delivery.oplog (channel_id, oplog_id) WHERE recalls IS NOT NULL;
-- The hash comes first, so that no lookup by (channel, id) uses this index: on a new partition, without statistics, the
-- planner would find it as good.
CREATE INDEX oplog_by_third_message ON delivery.oplog (third_message_hash, channel_id);
-- The notifier reads the last seconds. Rows arrive in time order, so a block range index costs almost nothing.
CREATE INDEX oplog_by_time ON delivery.oplog USING brin (created_at) WITH (pages_per_range = 16, autosummarize = on);
-- The sweep and the statistics read the last transactions every few seconds, in order. A scan of a block range index
-- takes longer the larger the week is (0.2 s for 600 million rows). This index takes about 70 bytes of WAL and 12 bytes
-- on disk for each push; its rows go to its last page.
CREATE INDEX oplog_by_transaction ON delivery.oplog (written_by);
CREATE INDEX oplog_by_conversation ON delivery.oplog (channel_id, conversation, oplog_id)
    WHERE conversation IS NOT NULL;

-- Partitions whose newest oplog is older than the longest retention and the day by which a `thirdMsgId` outlives it
-- (D18). They are detached concurrently, which no push waits for, and then dropped. Only the table's owner can detach
-- in this way, and no function can do it. So mss_oplog_keeper owns this one table; its partitions belong to mss_owner
-- like all other tables.
CREATE VIEW delivery.ended_oplog_partition AS
    SELECT c.relname AS name, i.inhrelid IS NOT NULL AS is_attached, coalesce(i.inhdetachpending, false) AS is_detaching
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
    WHERE c.relkind = 'r' AND c.relnamespace = 'delivery'::regnamespace AND c.relname ~ '^oplog_\d{8}$'
        AND to_date(substr(c.relname, 7), 'YYYYMMDD') + 7 < now() AT TIME ZONE 'UTC' - interval '31 days';
GRANT SELECT ON ended_oplog_partition TO mss_writer;

-- A new owner of a table needs CREATE on the schema at that moment (PostgreSQL manual, ALTER TABLE).
GRANT CREATE ON SCHEMA delivery TO mss_oplog_keeper;
ALTER TABLE oplog OWNER TO mss_oplog_keeper;
REVOKE CREATE ON SCHEMA delivery FROM mss_oplog_keeper;
GRANT SELECT ON oplog TO mss_writer, mss_operator;
