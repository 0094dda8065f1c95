-- Store schemas (Design.md#stores). Each store has this; {store} is its number, and {stores} the number of stores.
--
-- Changed functions: epochs.sql, rollouts.sql, subscriptions.sql; new: every_store.sql.

-- Whether the data of a target is in this store: the first 32 bits of the SHA-256, modulo the number of stores, as in
-- StoreLayout.swift. It never changes, because stored rows do not move. With one store the planner makes it the
-- constant true: it replaces the call by the body, because every function in it is immutable. So the bytes of the text
-- are read by a cast, where backslashes are escapes, and not by convert_to, which is only stable.
CREATE FUNCTION is_of_store(in_instance text, in_target text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT {stores} = 1 OR {store} = (
        'x' || left(encode(sha256(replace(in_instance || '/' || in_target, '\', '\\')::bytea), 'hex'), 8)
    )::bit(32)::bigint % {stores}
$$;
GRANT EXECUTE ON FUNCTION is_of_store TO mss_writer;

-- Refuses a row of another store.
CREATE FUNCTION refuse_other_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the row belongs to another store' USING ERRCODE = 'check_violation';
END $$;

DO $$
BEGIN
    IF {stores} > 1 THEN
        -- A writer that works on the wrong store is refused. The key of a row never changes, so only an INSERT is
        -- looked at: a CHECK would also be prepared and evaluated for each append, which moves the channel's head.
        CREATE TRIGGER of_store BEFORE INSERT ON channel FOR EACH ROW
            WHEN (NOT is_of_store(NEW.instance_id, NEW.target)) EXECUTE FUNCTION refuse_other_store();
        CREATE TRIGGER of_store BEFORE INSERT ON user_parameter FOR EACH ROW
            WHEN (NOT is_of_store(NEW.instance_id, NEW.user_id)) EXECUTE FUNCTION refuse_other_store();
        -- An id names its store: it is the remainder of the division by {stores}.
        ALTER TABLE channel ALTER COLUMN channel_id
            SET INCREMENT BY {stores} SET START WITH {store_first_id} RESTART;
        ALTER TABLE reread ALTER COLUMN reread_id
            SET INCREMENT BY {stores} SET START WITH {store_first_id} RESTART;
    END IF;
END $$;
