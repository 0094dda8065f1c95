-- Begins and enters database epochs (Design.md#failover-and-epochs).

-- Begins a database epoch. Every number that another process or a person remembers continues above all values that the
-- lost history may have given: sequences (channels, connections, revocations), the control version, and each revision.
-- So no lost number names another change, and a gateway that still reads under the number of a lost channel does not
-- find another channel.
-- Leases and sessions predate this epoch, so they are truncated, as after a crash of the server.
-- The epoch is at least the number of days since 2026-01-01, so a database from an old backup does not repeat an epoch
-- that was used after the backup.
-- Another cluster numbers its transactions anew, so the statistics get a new starting point here (statistics_reading).
CREATE OR REPLACE FUNCTION begin_epoch() RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    begun bigint;
    revised regclass;
    is_elsewhere boolean := (SELECT system <> current_system() FROM incarnation);
BEGIN
    UPDATE incarnation
    SET system = current_system(), timeline = current_timeline(),
        epoch = greatest(epoch + 1, current_date - date '2026-01-01')
    RETURNING epoch INTO begun;
    -- An id names its store by a remainder (m0014_stores), which the new values keep.
    PERFORM setval(
        q.seqrelid::regclass, (begun << 40) - (begun << 40) % q.seqincrement + q.seqstart % q.seqincrement)
    FROM pg_sequence q JOIN pg_class c ON c.oid = q.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname ~ '^(public|delivery(_\d+)?)$';
    UPDATE control_version SET version = greatest(version + 1, begun << 40);
    FOR revised IN
        SELECT a.attrelid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
        WHERE c.relnamespace IN ('public'::regnamespace, 'delivery'::regnamespace) AND a.attname = 'revision'
            AND NOT a.attisdropped
    LOOP
        EXECUTE format('UPDATE %s SET revision = greatest(revision + 1, $1 << 40)', revised) USING begun;
    END LOOP;
    TRUNCATE gateway, replaced_lease, lease_book, device_session;
    IF is_elsewhere THEN
        INSERT INTO statistics_reading (epoch, read_below, unread)
        SELECT begun, p.ends, p.running FROM present_transactions() p;
    END IF;
    RETURN begun;
END $$;

-- Called by a process on each new connection. A promoted standby and a database in another cluster begin a new epoch.
-- An old primary is refused.
CREATE OR REPLACE FUNCTION enter_incarnation() RETURNS bigint LANGUAGE plpgsql VOLATILE
SECURITY DEFINER SET search_path = public, delivery, pg_temp AS $$
DECLARE
    server_timeline bigint := current_timeline();
    entered incarnation;
BEGIN
    PERFORM FROM incarnation WHERE system <> current_system() OR timeline < server_timeline FOR UPDATE;
    IF FOUND THEN PERFORM begin_epoch(); END IF;
    SELECT * INTO entered FROM incarnation;
    IF entered.timeline > server_timeline THEN
        RAISE EXCEPTION 'this server is on timeline %, but timeline % has been served: it is an old primary',
            server_timeline, entered.timeline;
    END IF;
    RETURN entered.epoch;
END $$;

GRANT EXECUTE ON FUNCTION enter_incarnation TO mss_writer, mss_statistics, mss_console, mss_notifier, mss_relay;
