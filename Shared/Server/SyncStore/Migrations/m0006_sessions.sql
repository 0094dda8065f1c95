-- Leases of gateways, sessions of devices, and the owners of single-device data.

-- Leases and sessions are unlogged: a crash of the server empties them. Then the gateways lose their leases and
-- register every session again (Design.md#leases-and-fencing).
CREATE UNLOGGED TABLE delivery.gateway (
    gateway_id text COLLATE "C" PRIMARY KEY,
    epoch bigint NOT NULL,
    -- Rises with each renewal. A writer that has seen the same number for a lease's length by its own clock removes the
    -- row, which ends the lease (LeaseExpiryTracker). So a jump of the database's clock ends no lease.
    renewals bigint NOT NULL DEFAULT 0,
    control_version bigint NOT NULL, -- of the control data that its sessions use
    sessions bigint NOT NULL -- open sessions, as last reported
) WITH (fillfactor = 50);
GRANT SELECT, DELETE ON gateway TO mss_writer;
GRANT SELECT ON gateway TO mss_operator;

-- Leases that a new lease of the same gateway id has replaced. The earlier process may be alive, paused or cut off, and
-- holds its lease until the lease's end. A writer removes these rows in the same way, and no renewal changes them.
CREATE UNLOGGED TABLE delivery.replaced_lease (
    gateway_id text COLLATE "C" NOT NULL,
    epoch bigint PRIMARY KEY,
    renewals bigint NOT NULL,
    control_version bigint NOT NULL
);
GRANT SELECT, DELETE ON replaced_lease TO mss_writer;
GRANT SELECT ON replaced_lease TO mss_operator;

-- The lease record: whether `gateway` and `replaced_lease` have every lease that may be held. A crash or a failover
-- empties the tables. Then a writer inserts a new row, and marks it complete after a lease's length by the writer's
-- clock. A new database has given no lease.
CREATE UNLOGGED TABLE delivery.lease_book (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    book_id uuid NOT NULL DEFAULT gen_random_uuid(),
    is_complete boolean NOT NULL
);
INSERT INTO lease_book (is_complete) VALUES (true);
GRANT SELECT, INSERT, UPDATE (is_complete) ON lease_book TO mss_writer;
GRANT SELECT ON lease_book TO mss_operator;

CREATE UNLOGGED TABLE delivery.device_session (
    instance_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    store_id text COLLATE "C" NOT NULL,
    -- The device's number of the connection, rising within the store; 0: it is not compared.
    device_connection bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL, -- empty: no user bound
    gateway_id text COLLATE "C" NOT NULL,
    gateway_epoch bigint NOT NULL,
    -- The gateway's number of the connection, rising.
    connection_number bigint NOT NULL,
    registration_number bigint NOT NULL, -- the gateway's number of the newest registration
    connection_epoch bigint NOT NULL,
    operating_system smallint NOT NULL,
    app_version text NOT NULL,
    slot smallint NOT NULL, -- of the device id (DeviceSlot)
    is_foreground boolean NOT NULL,
    verdict_until timestamptz NOT NULL,
    -- The gateway's number of the registration or update that has set the foreground state and the verdict.
    state_number bigint NOT NULL,
    -- Sync IDs that the device has suspended.
    suspended text[] COLLATE "C" NOT NULL,
    -- When this connection was first registered under the present lease.
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance_id, device_id)
) WITH (fillfactor = 80);
CREATE INDEX device_session_by_user ON delivery.device_session (instance_id, user_id) WHERE user_id <> '';
CREATE INDEX device_session_by_gateway ON delivery.device_session (gateway_id);
SELECT belt('device_session');
GRANT SELECT, UPDATE (is_foreground, verdict_until, state_number), DELETE ON device_session TO mss_writer;
GRANT SELECT ON device_session TO mss_operator;

-- Gives the epochs of leases, connections and ownerships. It is logged, so they rise over every crash.
CREATE SEQUENCE delivery.presence_epoch AS bigint;

-- The device that receives a user's single-device channels; a disconnected owner stays owner (D8). Only this device
-- moves the user's sync point of such a channel.
CREATE TABLE delivery.owner (
    instance_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    -- Drawn when a bind changes the owner. A device that becomes the owner again after a failover keeps the epoch that
    -- it was given before. So the epoch rises with every change of this row.
    ownership_epoch bigint NOT NULL,
    PRIMARY KEY (instance_id, user_id)
) WITH (fillfactor = 80);
SELECT belt('owner');
GRANT SELECT ON owner TO mss_writer, mss_operator;

-- The secret that each device id belongs to (SEC9).
CREATE TABLE delivery.device_secret (
    instance_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    secret_digest bytea NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance_id, device_id)
);
SELECT belt('device_secret');
