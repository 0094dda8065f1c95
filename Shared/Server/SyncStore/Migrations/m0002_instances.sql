-- Control data: instances, configurations and keys. Only functions change it, and they write the audit record.
--
-- Codes of sync_configuration.kind, channel.kind and rollout.kind (ChannelKind); those of one target differ by 2:
--   0 user           1 device           2 globalUser           3 globalDevice
-- Codes of app_key.purpose (AppKey.Purpose):
--   1 backend        2 device           3 callout

CREATE TABLE control_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version bigint NOT NULL
);
INSERT INTO control_version (version) VALUES (1);
GRANT SELECT ON control_version TO mss_writer;

CREATE TABLE instance (
    instance_id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    is_enabled boolean NOT NULL,
    validator_url text NOT NULL,
    -- Not null: the verdict is requested through an mPaaS mobile gateway (V2).
    gateway_app_id text,
    gateway_workspace_id text,
    gateway_wraps_body boolean,
    CHECK (num_nulls(gateway_app_id, gateway_workspace_id, gateway_wraps_body) IN (0, 3)),
    verdict_lifetime_ms bigint NOT NULL CHECK (verdict_lifetime_ms >= 0),
    requires_signature boolean NOT NULL DEFAULT false,
    binds_devices boolean NOT NULL DEFAULT false,
    -- Every bind makes its device the owner, not only a bind that the app requested (D8).
    latest_connection_owns boolean NOT NULL DEFAULT false,
    session_units integer NOT NULL DEFAULT 100 CHECK (session_units BETWEEN 100 AND 4096),
    -- For calls without a key; null: no limit.
    requests_per_second integer CHECK (requests_per_second > 0),
    pushes_per_day bigint CHECK (pushes_per_day > 0),
    -- At most the lifetime of a partition, less the day by which a `thirdMsgId` outlives its oplog (D11, D18).
    retention interval NOT NULL CHECK (retention BETWEEN interval '1 day' AND interval '30 days'),
    -- Rises with every change and with every epoch. A change that names an older revision is refused.
    revision bigint NOT NULL DEFAULT 1,
    -- Empty: the instance accepts no device operations.
    relay_url text NOT NULL DEFAULT ''
);
SELECT belt('instance');
GRANT SELECT ON instance TO mss_writer, mss_operator;

CREATE TABLE sync_configuration (
    instance_id text COLLATE "C" NOT NULL REFERENCES instance,
    biz_type text COLLATE "C" NOT NULL,
    description text NOT NULL,
    kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 3),
    is_multi_device boolean NOT NULL,
    is_persistent boolean NOT NULL,
    threshold integer NOT NULL CHECK (threshold BETWEEN 0 AND 1000),
    checks_session boolean NOT NULL,
    is_online boolean NOT NULL,
    is_immediate boolean NOT NULL,
    -- Null: the instance's lifetime; 0: a verdict is requested before every batch (V5).
    verdict_lifetime_ms bigint CHECK (verdict_lifetime_ms >= 0),
    revision bigint NOT NULL DEFAULT 1,
    -- Older oplogs belong to a deleted configuration of the same Sync ID and are ignored (D17).
    data_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Texts as an operator writes them (SubscriptionText); empty: no filter, no declarations.
    filter text NOT NULL DEFAULT '',
    attributes text NOT NULL DEFAULT '',
    parameters text NOT NULL DEFAULT '',
    -- The configuration has, or once had, a filter, so the filters of its receivers are in subscription_segment.
    is_filtered boolean NOT NULL DEFAULT false,
    PRIMARY KEY (instance_id, biz_type)
);
SELECT belt('sync_configuration');
GRANT SELECT ON sync_configuration TO mss_writer, mss_operator;

-- Keys of instances. A secret is sealed with a master key that is never in the database (SEC16).
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
SELECT belt('app_key');
GRANT SELECT ON app_key TO mss_writer;
