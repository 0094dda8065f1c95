-- Changes of keys. The answers are those of the functions in instances.sql.

-- A key as audit records show it: never with its secret, sealed or not.
CREATE OR REPLACE FUNCTION key_members(in_row app_key) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'keyId', in_row.key_id, 'purpose', (ARRAY['backend', 'device', 'callout'])[in_row.purpose],
        'requestsPerSecond', in_row.requests_per_second, 'pushesPerDay', in_row.pushes_per_day)
$$;

-- Adds a key where the instance has fewer than `in_most` keys of the purpose. The instance row is locked until the
-- commit: of two transactions that add the last key, the second one counts after the first has committed.
CREATE OR REPLACE FUNCTION create_key(in_actor text[], in_row app_key, in_most bigint)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
BEGIN
    in_row.created_at := clock_timestamp();
    PERFORM FROM instance n WHERE n.instance_id = in_row.instance_id FOR NO KEY UPDATE;
    IF FOUND AND in_most > (
        SELECT count(*) FROM app_key k WHERE k.instance_id = in_row.instance_id AND k.purpose = in_row.purpose
    ) THEN
        INSERT INTO app_key VALUES (in_row.*) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN QUERY SELECT * FROM finish_change(
                in_actor, 30 /* createKey */, in_row.instance_id, in_row.key_id, NULL, key_members(in_row));
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT NULL::bigint, false, false;
END $$;

-- Revokes a key.
CREATE OR REPLACE FUNCTION revoke_key(in_actor text[], in_instance text, in_key text)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
DECLARE
    gone app_key;
BEGIN
    DELETE FROM app_key k WHERE k.instance_id = in_instance AND k.key_id = in_key RETURNING k.* INTO gone;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
    ELSE
        RETURN QUERY SELECT * FROM finish_change(
            in_actor, 31 /* revokeKey */, in_instance, in_key, key_members(gone), NULL);
    END IF;
END $$;

-- Replaces the sealed form of a key's secret; the secret stays the same.
CREATE OR REPLACE FUNCTION reseal_key(in_actor text[], in_instance text, in_key text, in_sealed bytea)
RETURNS TABLE (version bigint, is_changed boolean, is_stale boolean) LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
#variable_conflict use_column
BEGIN
    UPDATE app_key k SET sealed_secret = in_sealed WHERE k.instance_id = in_instance AND k.key_id = in_key;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, false, false;
    ELSE
        RETURN QUERY SELECT * FROM finish_change(in_actor, 32 /* resealKey */, in_instance, in_key, NULL, NULL);
    END IF;
END $$;

GRANT EXECUTE ON FUNCTION create_key, revoke_key, reseal_key TO mss_writer;
