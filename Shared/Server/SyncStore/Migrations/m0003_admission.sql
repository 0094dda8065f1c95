-- What all processes must count or refuse together: nonces, quotas, revocations of user sessions.

-- Nonces of signed requests, kept until their timestamps are refused: each is valid once per key (H9).
CREATE TABLE request_nonce (
    key_id text COLLATE "C" NOT NULL,
    nonce bytea NOT NULL,
    claim bytea NOT NULL, -- of the request that used the nonce: a repeated claim is recognized
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, nonce)
);
CREATE INDEX request_nonce_by_end ON request_nonce (expires_at);
GRANT SELECT, INSERT, UPDATE (claim), DELETE ON request_nonce TO mss_writer;

-- The part of each daily quota that processes have reserved.
CREATE TABLE push_quota (
    instance_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL, -- empty: calls without a key
    day date NOT NULL,
    taken bigint NOT NULL,
    granted bigint NOT NULL, -- the part of `taken` that the last request was granted
    PRIMARY KEY (instance_id, key_id, day)
);
SELECT belt('push_quota');
GRANT SELECT, INSERT, UPDATE (taken, granted), DELETE ON push_quota TO mss_writer;

-- User sessions that a tenant has ended: verdicts requested before do not count. Kept longer than any verdict lifetime.
CREATE TABLE session_revocation (
    instance_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    session_digest bytea NOT NULL, -- empty: every user session of the user
    revoked_at timestamptz NOT NULL,
    -- Orders two revocations, also when the clock was set back between them.
    revocation_number bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (instance_id, user_id, session_digest)
);
CREATE INDEX session_revocation_by_time ON session_revocation (revoked_at);
SELECT belt('session_revocation');
GRANT SELECT, DELETE ON session_revocation TO mss_writer;
GRANT SELECT, INSERT, UPDATE (revoked_at, revocation_number) ON session_revocation TO mss_operator;
