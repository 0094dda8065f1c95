-- What the service knows of receivers: sync points, re-reads, and their filters with the parameters that users set
-- (FilterHistory.swift; Shared/Client/MobileSync/README.md#parameters).

-- How far a receiver has stored a channel; it never falls. Device and store are empty where the channel has one sync
-- point for its user or device (W7). The user is set only for global data for users: on a device that several users
-- share, each of them receives it.
CREATE TABLE delivery.sync_point (
    channel_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    store_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL DEFAULT '',
    oplog_id bigint NOT NULL,
    -- The highest id that the store itself has acknowledged or reported; oplog_id also counts skipped and discarded
    -- oplogs. A store that reports less is a restored copy.
    acknowledged_id bigint NOT NULL DEFAULT 0,
    -- For a simple client: how often the batch that begins with this oplog was resent (R7).
    resent_id bigint NOT NULL DEFAULT 0,
    repeats smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (channel_id, device_id, store_id, user_id)
) WITH (fillfactor = 80);
GRANT SELECT, INSERT, UPDATE (oplog_id, acknowledged_id, resent_id, repeats) ON sync_point TO mss_writer;
GRANT SELECT ON sync_point TO mss_operator;

-- Oplogs that one device receives again, below its sync point (D3). The device acknowledges the row's number.
CREATE TABLE delivery.reread (
    reread_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL, -- the bound user; used for global data for users
    oplog_id bigint NOT NULL,
    reason text NOT NULL,
    actor text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at timestamptz
);
CREATE INDEX reread_by_device ON delivery.reread (device_id) WHERE done_at IS NULL;
CREATE INDEX reread_by_oplog ON delivery.reread (channel_id, oplog_id, device_id);
GRANT SELECT, INSERT, UPDATE (device_id, done_at) ON reread TO mss_writer;
GRANT SELECT, INSERT ON reread TO mss_operator;

-- Values that one device of a user has set for all devices of the user.
CREATE TABLE delivery.user_parameter (
    instance_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    biz_type text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL, -- JSON (SubscriptionValue)
    PRIMARY KEY (instance_id, user_id, biz_type, name)
);
SELECT belt('user_parameter');
GRANT SELECT, INSERT, UPDATE (value), DELETE ON user_parameter TO mss_writer;

-- The filters of a receiver of a channel, in their order. The receiver is named as in sync_point. No row: no filter.
CREATE TABLE delivery.subscription_segment (
    channel_id bigint NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    store_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    filter text NOT NULL, -- with its values (ResolvedFilter); empty: all oplogs pass
    upto bigint, -- the newest oplog that it decided; null: it is in force
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (channel_id, device_id, store_id, user_id, number)
);
GRANT SELECT, INSERT, DELETE ON subscription_segment TO mss_writer;
