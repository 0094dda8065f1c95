-- Who may use the console, and who is signed in. Only the console reads and writes these tables.

CREATE TABLE console_account (
    account_name text COLLATE "C" PRIMARY KEY,
    password_hash text, -- null: none chosen yet
    sealed_totp bytea, -- null: no second factor
    totp_step bigint NOT NULL DEFAULT 0, -- of the last code that was good: each is good once
    language text NOT NULL DEFAULT '',
    is_enabled boolean NOT NULL DEFAULT true,
    failures integer NOT NULL DEFAULT 0,
    locked_until timestamptz,
    revision integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What an account may do with an instance; the empty instance stands for all of them and for the service itself.
CREATE TABLE console_grant (
    account_name text COLLATE "C" NOT NULL REFERENCES console_account ON DELETE CASCADE,
    instance_id text COLLATE "C" NOT NULL,
    role smallint NOT NULL CHECK (role BETWEEN 1 AND 3),
    PRIMARY KEY (account_name, instance_id)
);

-- The database never sees what a browser shows, only its digest.
CREATE TABLE console_session (
    token_digest bytea PRIMARY KEY,
    account_name text COLLATE "C" NOT NULL REFERENCES console_account ON DELETE CASCADE,
    source text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    confirmed_at timestamptz NOT NULL DEFAULT clock_timestamp() -- when the password was given last
);
CREATE INDEX console_session_by_account ON console_session (account_name);

-- Invitations to choose a password, each good once. The empty account stands for the first administrator.
CREATE TABLE console_invitation (
    token_digest bytea PRIMARY KEY,
    account_name text COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL
);

-- ---- rights of the tiers (see m0001_oplog) -------------------------------------------------------------------------

GRANT SELECT, INSERT, UPDATE, DELETE ON console_account, console_grant, console_session, console_invitation
    TO mss_console;
SELECT belt('console_grant');
CREATE POLICY every_grant ON console_grant TO mss_console USING (true);
