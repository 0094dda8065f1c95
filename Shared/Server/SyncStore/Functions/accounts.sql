-- Attempts at passwords, and changes of the console's accounts. The codes of roles are in m0012_console.

-- ---- attempts -------------------------------------------------------------------------------------------------------

-- Claims an attempt before its password is checked, so that each of many simultaneous attempts counts. Returns 0, or
-- the milliseconds to wait. A source waits from its fifth failure in a row at one name on, and from its fiftieth at any
-- names; all sources together wait from the fiftieth failure at one name. Each wait is twice as long as the former, at
-- most 15 minutes. An hour without an attempt resets a row. For a source from which the account has signed in within 30
-- days, only the failures of that source at that name count: strangers cannot lock the account's owner out (SEC14).
CREATE OR REPLACE FUNCTION claim_try(in_account text, in_source text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
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

-- Returns an attempt whose password was right. `in_is_known`: the account signed in, so the failures of the source are
-- forgotten.
CREATE OR REPLACE FUNCTION forgive_try(in_account text, in_source text, in_is_known boolean) RETURNS void
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

-- Each change is made by a function that also writes the audit record, as with control data. False: there is no such
-- account, or another change came first.

-- An account as audit records show it: never with a password or a secret.
CREATE OR REPLACE FUNCTION account_members(in_name text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'name', a.account_name, 'enabled', a.is_enabled, 'secondFactor', a.sealed_totp IS NOT NULL,
        'roles', coalesce((
            SELECT jsonb_object_agg(g.instance_id, (ARRAY['viewer', 'operator', 'administrator'])[g.role])
            FROM console_grant g WHERE g.account_name = a.account_name), '{}'))
    FROM console_account a WHERE a.account_name = in_name
$$;

-- Replaces the invitations of an account by this one; the empty name stands for a first administrator.
CREATE OR REPLACE FUNCTION put_invitation(in_actor text[], in_name text, in_invitation bytea) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM console_invitation i WHERE i.account_name = in_name OR i.expires_at < clock_timestamp();
    INSERT INTO console_invitation VALUES (in_invitation, in_name, clock_timestamp() + interval '1 day');
    PERFORM record_operation(
        in_actor, 57::smallint /* inviteUser */, '', CASE in_name WHEN '' THEN '(administrator)' ELSE in_name END,
        NULL, NULL);
END $$;

-- Creates an account without a password, with an invitation to choose one; false: the name is taken.
CREATE OR REPLACE FUNCTION create_account(
    in_actor text[], in_name text, in_instances text[], in_roles smallint[], in_invitation bytea
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
BEGIN
    INSERT INTO console_account (account_name) VALUES (in_name) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO console_grant SELECT in_name, g.instance_id, g.role
    FROM unnest(in_instances, in_roles) AS g (instance_id, role);
    PERFORM record_operation(in_actor, 50::smallint /* createUser */, '', in_name, NULL, account_members(in_name));
    PERFORM put_invitation(in_actor, in_name, in_invitation);
    RETURN true;
END $$;

-- Changes the roles of an account that still has the given revision, and enables or disables it. A disabled account is
-- signed out at once.
CREATE OR REPLACE FUNCTION modify_account(
    in_actor text[], in_name text, in_instances text[], in_roles smallint[], in_is_enabled boolean, in_revision bigint
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
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
        PERFORM record_operation(in_actor, 51::smallint /* modifyUser */, '', in_name, held, account_members(in_name));
    END IF;
    RETURN true;
END $$;

-- Removes an account and signs it out. Its invitations are removed too: they must not be valid for a later account of
-- the same name.
CREATE OR REPLACE FUNCTION remove_account(in_actor text[], in_name text) RETURNS boolean LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
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
    PERFORM record_operation(in_actor, 52::smallint /* removeUser */, '', in_name, held, NULL);
    RETURN true;
END $$;

-- Invites an account to choose a password within a day; earlier invitations become invalid.
CREATE OR REPLACE FUNCTION invite_account(in_actor text[], in_name text, in_invitation bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
BEGIN
    PERFORM FROM console_account a WHERE a.account_name = in_name FOR UPDATE;
    IF FOUND THEN
        PERFORM put_invitation(in_actor, in_name, in_invitation);
    END IF;
    RETURN FOUND;
END $$;

-- Invites an administrator: the first one, or one that cannot sign in any more. Earlier such invitations become
-- invalid. Only the owner of the database may call it, because the caller gets all rights in the service.
CREATE OR REPLACE FUNCTION invite_administrator(
    in_actor text[], in_invitation bytea
) RETURNS void LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
BEGIN
    PERFORM put_invitation(in_actor, '', in_invitation);
END $$;

-- Gives an account a password: every session except the given one ends, and its invitations and failures are removed.
CREATE OR REPLACE FUNCTION set_password(in_actor text[], in_name text, in_hash text, in_spared bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
BEGIN
    UPDATE console_account a SET password_hash = in_hash WHERE a.account_name = in_name;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM console_session s WHERE s.account_name = in_name AND s.token_digest <> in_spared;
    DELETE FROM console_invitation i WHERE i.account_name = in_name;
    UPDATE console_try t SET failures = 0, locked_until = NULL WHERE t.account_name = in_name;
    PERFORM record_operation(in_actor, 53::smallint /* changePassword */, '', in_name, NULL, NULL);
    RETURN true;
END $$;

-- Uses an invitation: the account gets the password. When two calls use it at once, one finds it gone. An
-- administrator's invitation creates the named account, or gives it all rights. Every other invitation is valid only
-- for its own account.
CREATE OR REPLACE FUNCTION use_invitation(
    in_source text, in_invitation bytea, in_name text, in_hash text
) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
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
        INSERT INTO console_grant VALUES (in_name, '', 3 /* administrator */)
        ON CONFLICT (account_name, instance_id) DO UPDATE SET role = 3 /* administrator */;
        PERFORM record_operation(
            person, CASE WHEN held IS NULL THEN 50 /* createUser */ ELSE 51 /* modifyUser */ END::smallint, '', in_name,
            held, account_members(in_name));
    END IF;
    RETURN set_password(person, in_name, in_hash, '');
END $$;

-- Sets the second factor, or removes it when no bytes are given.
--
-- `in_step`: the step of the code that proved the secret; this code and earlier ones are not accepted again.
CREATE OR REPLACE FUNCTION set_second_factor(
    in_actor text[], in_name text, in_sealed bytea, in_step bigint
) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
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
        PERFORM record_operation(in_actor, 51::smallint /* modifyUser */, '', in_name, held, changed);
    END IF;
    RETURN true;
END $$;

GRANT EXECUTE ON FUNCTION claim_try, forgive_try, create_account, modify_account, remove_account, invite_account,
    set_password, use_invitation, set_second_factor TO mss_console;
