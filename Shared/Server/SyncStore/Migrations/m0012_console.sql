-- Accounts of the console and their sessions. Only the console reads these tables. It changes accounts only through
-- functions, which record the change; exceptions are the language and the last used code.
--
-- Codes of console_grant.role (ConsoleRole):
--   1 viewer         2 operations       3 administrator

CREATE TABLE console_account (
    account_name text COLLATE "C" PRIMARY KEY,
    password_hash text, -- null: not chosen yet
    sealed_totp bytea, -- null: no second factor
    totp_step bigint NOT NULL DEFAULT 0, -- of the last accepted code: each is accepted once
    language text NOT NULL DEFAULT '',
    is_enabled boolean NOT NULL DEFAULT true,
    revision bigint NOT NULL DEFAULT first_revision(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT SELECT, UPDATE (language, totp_step) ON console_account TO mss_console;

-- The role of an account in an instance; the empty instance stands for all instances and for the service itself.
CREATE TABLE console_grant (
    account_name text COLLATE "C" NOT NULL REFERENCES console_account ON DELETE CASCADE,
    instance_id text COLLATE "C" NOT NULL,
    role smallint NOT NULL CHECK (role BETWEEN 1 AND 3),
    PRIMARY KEY (account_name, instance_id)
);
SELECT belt('console_grant');
CREATE POLICY every_grant ON console_grant TO mss_console USING (true);
GRANT SELECT ON console_grant TO mss_console;

-- The database has only the digest of a browser's token.
CREATE TABLE console_session (
    token_digest bytea PRIMARY KEY,
    account_name text COLLATE "C" NOT NULL REFERENCES console_account ON DELETE CASCADE,
    source text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    confirmed_at timestamptz NOT NULL DEFAULT clock_timestamp() -- when the password was given last
);
CREATE INDEX console_session_by_account ON console_session (account_name);
GRANT SELECT, INSERT, UPDATE, DELETE ON console_session TO mss_console;

-- Invitations to choose a password, each valid once. The empty account stands for the first administrator.
CREATE TABLE console_invitation (
    token_digest bytea PRIMARY KEY,
    account_name text COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL
);
GRANT SELECT ON console_invitation TO mss_console;

-- Attempts at the password of a name: by source, and under the empty source by all sources together. The empty name has
-- the attempts of a source at all names. Names without an account have rows too, so nothing distinguishes them.
CREATE TABLE console_try (
    account_name text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    locked_until timestamptz,
    tried_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    known_until timestamptz, -- the account has signed in from this source
    PRIMARY KEY (account_name, source)
);
CREATE INDEX console_try_by_time ON console_try (tried_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON console_try TO mss_console;
