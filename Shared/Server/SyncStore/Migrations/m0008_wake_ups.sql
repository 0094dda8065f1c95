-- Silent pushes that wake devices (deploy/manual/WakeUp.md).
--
-- Codes of push_token.provider (PushToken.Provider):
--   1 apns           2 fcm

-- The push token with which a device can be woken while it is not connected.
CREATE TABLE delivery.push_token (
    instance_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL, -- the bound user at the last connection; empty: none
    provider smallint NOT NULL,
    token text COLLATE "C" NOT NULL,
    -- When a notifier claimed the device to wake it.
    claimed_at timestamptz,
    -- When the provider accepted a wake-up; null: none since the device last connected.
    woken_at timestamptz,
    PRIMARY KEY (instance_id, device_id)
) WITH (fillfactor = 80);
CREATE INDEX push_token_by_user ON delivery.push_token (instance_id, user_id) WHERE user_id <> '';
CREATE INDEX push_token_by_token ON delivery.push_token (token);
SELECT belt('push_token');

-- The time up to which notifiers have read the stored oplogs.
CREATE TABLE delivery.wake_up_progress (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    looked_upto timestamptz NOT NULL
);
INSERT INTO wake_up_progress (looked_upto) VALUES (clock_timestamp());
