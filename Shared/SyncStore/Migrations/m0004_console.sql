-- Who may use the console, and who is signed in. Only the console reads these tables, and it changes accounts by
-- functions alone, which record the change; all but their language, and which code was used last.

CREATE TABLE console_account (
    account_name text COLLATE "C" PRIMARY KEY,
    password_hash text, -- null: none chosen yet
    sealed_totp bytea, -- null: no second factor
    totp_step bigint NOT NULL DEFAULT 0, -- of the last code that was good: each is good once
    language text NOT NULL DEFAULT '',
    is_enabled boolean NOT NULL DEFAULT true,
    revision bigint NOT NULL DEFAULT first_revision(),
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

-- Tries at a name's password, of each source, and of all sources together under the empty one; of a source at all names
-- under the empty name. Names that are no account's have their rows too: nothing tells them apart.
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

-- ---- tries ---------------------------------------------------------------------------------------------------------

-- Takes a try before its password is looked at, so that of many at once each counts, and answers 0; or answers how
-- many milliseconds are to be waited. A source waits from its fifth failure in a row at one name on, and from its
-- fiftieth at whatever names; all sources together from the fiftieth at one name; each twice as long every time, a
-- quarter of an hour at the most; an hour without a try ends a row. From where the account has signed in within 30
-- days, only that source's own failures at it count: strangers cannot keep its owner out (reliability SEC14).
CREATE FUNCTION claim_try(in_account text, in_source text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    waits interval;
BEGIN
    DELETE FROM console_try o WHERE o.ctid = ANY (ARRAY(
        SELECT t.ctid FROM console_try t
        WHERE t.tried_at < clock_timestamp() - interval '1 hour'
            AND coalesce(t.known_until, '-infinity') < clock_timestamp() AND t.account_name <> in_account
        LIMIT 100 FOR UPDATE SKIP LOCKED));
    -- The rows in the same order every time, and locked from here on.
    INSERT INTO console_try AS t (account_name, source)
    VALUES ('', in_source), (in_account, ''), (in_account, in_source)
    ON CONFLICT (account_name, source) DO UPDATE SET failures = CASE
        WHEN t.tried_at < clock_timestamp() - interval '1 hour' THEN 0 ELSE t.failures END;
    SELECT max(t.locked_until) - clock_timestamp() INTO waits FROM console_try t
    WHERE t.account_name = in_account AND t.source = in_source
        OR (t.account_name = in_account AND t.source = '' OR t.account_name = '' AND t.source = in_source)
        AND NOT EXISTS (
            SELECT FROM console_try k
            WHERE k.account_name = in_account AND k.source = in_source AND k.known_until > clock_timestamp());
    IF waits > interval '0' THEN
        RETURN ceil(extract(epoch FROM waits) * 1000);
    END IF;
    UPDATE console_try t SET failures = t.failures + 1, tried_at = clock_timestamp(),
        locked_until = CASE WHEN t.failures + 1 >= f.free THEN clock_timestamp()
            + least(interval '15 minutes', interval '1 second' * 2 ^ least(t.failures + 1 - f.free, 10)) END
    FROM (VALUES ('', in_source, 50), (in_account, '', 50), (in_account, in_source, 5)) AS f (name, source, free)
    WHERE t.account_name = f.name AND t.source = f.source;
    RETURN 0;
END $$;

-- Gives a try back whose password was right; `in_is_known`: and whoever made it came in, so the source's failures are
-- forgotten.
CREATE FUNCTION forgive_try(in_account text, in_source text, in_is_known boolean) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM console_try t
    WHERE t.account_name = in_account AND t.source IN ('', in_source) OR t.account_name = '' AND t.source = in_source
    ORDER BY t.account_name, t.source FOR UPDATE;
    UPDATE console_try t SET failures = greatest(t.failures - 1, 0), locked_until = NULL
    WHERE t.account_name = in_account AND t.source IN ('', in_source) OR t.account_name = '' AND t.source = in_source;
    UPDATE console_try t SET failures = 0, known_until = clock_timestamp() + interval '30 days'
    WHERE t.account_name = in_account AND t.source = in_source AND in_is_known;
END $$;

-- ---- changes of accounts -------------------------------------------------------------------------------------------

-- Each is a function that also makes the record, as with control data: no account is changed without. False: there is
-- no such account, or the change came too late.

-- An account as records show it: never with a password or a secret.
CREATE FUNCTION account_members(in_name text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'name', a.account_name, 'enabled', a.is_enabled, 'secondFactor', a.sealed_totp IS NOT NULL,
        'roles', coalesce((
            SELECT jsonb_object_agg(g.instance_id, (ARRAY['viewer', 'operator', 'administrator'])[g.role])
            FROM console_grant g WHERE g.account_name = a.account_name), '{}'))
    FROM console_account a WHERE a.account_name = in_name
$$;

-- Puts an invitation in the place of those that the account has; the empty name stands for a first administrator.
CREATE FUNCTION put_invitation(in_actor text[], in_name text, in_invitation bytea) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM console_invitation i WHERE i.account_name = in_name OR i.expires_at < clock_timestamp();
    INSERT INTO console_invitation VALUES (in_invitation, in_name, clock_timestamp() + interval '1 day');
    PERFORM record_operation(
        in_actor, 57::smallint, '', CASE in_name WHEN '' THEN '(administrator)' ELSE in_name END, NULL, NULL);
END $$;

-- Creates an account without a password, with an invitation to choose one; false: the name is taken.
CREATE FUNCTION create_account(
    in_actor text[], in_name text, in_instances text[], in_roles smallint[], in_invitation bytea
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO console_account (account_name) VALUES (in_name) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO console_grant SELECT in_name, g.instance_id, g.role
    FROM unnest(in_instances, in_roles) AS g (instance_id, role);
    PERFORM record_operation(in_actor, 50::smallint, '', in_name, NULL, account_members(in_name));
    PERFORM put_invitation(in_actor, in_name, in_invitation);
    RETURN true;
END $$;

-- Changes what an account that still has the revision given may do, and whether it may come in. Whoever is locked out
-- is signed out at once.
CREATE FUNCTION modify_account(
    in_actor text[], in_name text, in_instances text[], in_roles smallint[], in_is_enabled boolean, in_revision bigint
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held jsonb;
BEGIN
    PERFORM FROM console_account a WHERE a.account_name = in_name AND a.revision = in_revision FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    held := account_members(in_name);
    UPDATE console_account a SET is_enabled = in_is_enabled, revision = a.revision + 1 WHERE a.account_name = in_name;
    DELETE FROM console_grant g WHERE g.account_name = in_name;
    INSERT INTO console_grant SELECT in_name, g.instance_id, g.role
    FROM unnest(in_instances, in_roles) AS g (instance_id, role);
    DELETE FROM console_session s WHERE s.account_name = in_name AND NOT in_is_enabled;
    IF held <> account_members(in_name) THEN
        PERFORM record_operation(in_actor, 51::smallint, '', in_name, held, account_members(in_name));
    END IF;
    RETURN true;
END $$;

-- Removes an account and signs it out. Its invitations go too: they must not be good for somebody else who gets the
-- name later.
CREATE FUNCTION remove_account(in_actor text[], in_name text) RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held jsonb;
BEGIN
    PERFORM FROM console_account a WHERE a.account_name = in_name FOR UPDATE;
    held := account_members(in_name);
    DELETE FROM console_account a WHERE a.account_name = in_name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM console_invitation i WHERE i.account_name = in_name;
    DELETE FROM console_try t WHERE t.account_name = in_name;
    PERFORM record_operation(in_actor, 52::smallint, '', in_name, held, NULL);
    RETURN true;
END $$;

-- Invites an account to choose a password within a day; earlier invitations are void.
CREATE FUNCTION invite_account(in_actor text[], in_name text, in_invitation bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM console_account a WHERE a.account_name = in_name FOR UPDATE;
    IF FOUND THEN
        PERFORM put_invitation(in_actor, in_name, in_invitation);
    END IF;
    RETURN FOUND;
END $$;

-- Invites an administrator who has no account yet, or no way in any more; earlier such invitations are void. Only for
-- the owner of the database: whoever may do this owns the service.
CREATE FUNCTION invite_administrator(in_actor text[], in_invitation bytea) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM put_invitation(in_actor, '', in_invitation);
END $$;

-- Gives an account a password: every session of it but the one given ends, its invitations and its failures are
-- forgotten.
CREATE FUNCTION set_password(in_actor text[], in_name text, in_hash text, in_spared bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE console_account a SET password_hash = in_hash WHERE a.account_name = in_name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM console_session s WHERE s.account_name = in_name AND s.token_digest <> in_spared;
    DELETE FROM console_invitation i WHERE i.account_name = in_name;
    UPDATE console_try t SET failures = 0, locked_until = NULL WHERE t.account_name = in_name;
    PERFORM record_operation(in_actor, 53::smallint, '', in_name, NULL, NULL);
    RETURN true;
END $$;

-- Uses an invitation up: the account gets the password. Of two that use it at once one finds it gone. That of an
-- administrator makes the account that is named, or gives it all rights; any other is good for its own account alone.
CREATE FUNCTION use_invitation(in_source text, in_invitation bytea, in_name text, in_hash text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    person text[] := ARRAY['console:' || in_name, in_source];
    held jsonb;
    invited text;
BEGIN
    DELETE FROM console_invitation i
    WHERE i.token_digest = in_invitation AND i.expires_at > clock_timestamp() AND i.account_name IN ('', in_name)
    RETURNING i.account_name INTO invited;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF invited = '' THEN
        held := account_members(in_name);
        INSERT INTO console_account AS a (account_name) VALUES (in_name)
        ON CONFLICT (account_name) DO UPDATE SET is_enabled = true, revision = a.revision + 1;
        INSERT INTO console_grant VALUES (in_name, '', 3)
        ON CONFLICT (account_name, instance_id) DO UPDATE SET role = 3;
        PERFORM record_operation(
            person, CASE WHEN held IS NULL THEN 50 ELSE 51 END::smallint, '', in_name, held, account_members(in_name));
    END IF;
    RETURN set_password(person, in_name, in_hash, '');
END $$;

-- Sets or, with no bytes, removes the second factor.
--
-- `in_step`: of the code that showed the secret to be the person's: neither it nor an earlier one is good again.
CREATE FUNCTION set_second_factor(in_actor text[], in_name text, in_sealed bytea, in_step bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held jsonb;
    changed jsonb;
    is_replaced boolean;
BEGIN
    SELECT a.sealed_totp IS NOT NULL AND in_sealed <> '' INTO is_replaced FROM console_account a
    WHERE a.account_name = in_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    held := account_members(in_name);
    UPDATE console_account a SET sealed_totp = nullif(in_sealed, ''), totp_step = in_step
    WHERE a.account_name = in_name;
    changed := account_members(in_name)
        || CASE WHEN is_replaced THEN jsonb_build_object('secondFactorReplaced', true) ELSE '{}' END;
    IF held <> changed THEN
        PERFORM record_operation(in_actor, 51::smallint, '', in_name, held, changed);
    END IF;
    RETURN true;
END $$;

-- ---- rights of the tiers (see m0001_oplog) -------------------------------------------------------------------------

GRANT SELECT, INSERT, UPDATE, DELETE ON console_session, console_try TO mss_console;
GRANT SELECT ON console_account, console_grant, console_invitation TO mss_console;
GRANT UPDATE (language, totp_step) ON console_account TO mss_console;
GRANT EXECUTE ON FUNCTION claim_try, forgive_try, create_account, modify_account, remove_account, invite_account,
    set_password, use_invitation, set_second_factor TO mss_console;
SELECT belt('console_grant');
CREATE POLICY every_grant ON console_grant TO mss_console USING (true);
