import GRDB

/// The tables of the local store and their migrations.
///
/// A released migration is never edited; a change needs a new one. A store with unknown migrations is refused.
enum LocalStoreSchema {
    /// The migrations in order.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 oplogs and sync points") { try $0.execute(sql: step1) }
        migrator.registerMigration("2 operations and their results") { try $0.execute(sql: step2) }
        migrator.registerMigration("3 subscription parameters") { try $0.execute(sql: step3) }
        migrator.registerMigration("4 offline logins") { try $0.execute(sql: step4) }
        migrator.registerMigration("5 calls") { try $0.execute(sql: step5) }
        migrator.registerMigration("6 conversations") { try $0.execute(sql: step6) }
        return migrator
    }

    private static let step1 = """
        CREATE TABLE store (
            store_id TEXT NOT NULL, instance_id TEXT NOT NULL, device_id TEXT NOT NULL,
            -- PayloadCipher; NULL while payloads are stored in plain form.
            key_check BLOB,
            -- Service time minus device time at the last connection.
            clock_offset_ms INTEGER,
            -- Gateway time minus device time for signatures; NULL before the first refusal of a timestamp.
            signing_offset_ms INTEGER,
            -- The id that replaced device_id after the service refused it; NULL before.
            own_device_id TEXT,
            -- The secret of the device id; encrypted like payloads.
            device_secret BLOB,
            -- The number of connection attempts.
            connections INTEGER NOT NULL DEFAULT 0,
            -- The push token for the next Connect; NULL before the app has set one.
            push_provider INTEGER, push_token TEXT);
        CREATE TABLE channel (
            id INTEGER PRIMARY KEY,
            kind INTEGER NOT NULL,
            -- For device channels: empty, or the former device id of the channel.
            user_id TEXT NOT NULL,
            biz_type TEXT NOT NULL,
            sync_point INTEGER NOT NULL,
            -- LocalRange.
            complete_from INTEGER NOT NULL DEFAULT 0,
            complete_upto INTEGER NOT NULL DEFAULT 0,
            UNIQUE (kind, user_id, biz_type));
        CREATE TABLE oplog (
            channel_id INTEGER NOT NULL REFERENCES channel (id),
            oplog_id INTEGER NOT NULL,
            payload BLOB NOT NULL,
            is_binary INTEGER NOT NULL,
            third_message_id TEXT NOT NULL,
            created_at_ms INTEGER NOT NULL,
            -- No first hand-out from this time on; 0 for no limit.
            valid_until_ms INTEGER NOT NULL,
            -- The id of the oplog that this tombstone recalls; 0 for data.
            recalls INTEGER NOT NULL,
            -- Recalled by a tombstone; kept because the app had confirmed it.
            is_recalled INTEGER NOT NULL DEFAULT 0,
            -- Handed out as a replay.
            is_replay INTEGER NOT NULL,
            -- The app has had the oplog, or may have had it before it was deleted and read again.
            was_shown INTEGER NOT NULL,
            -- OplogState.
            state INTEGER NOT NULL DEFAULT 0,
            -- ResendLadder.State; counted before the app receives the oplog.
            hand_outs INTEGER NOT NULL DEFAULT 0,
            repeats INTEGER NOT NULL DEFAULT 0,
            -- The gateway has not recorded the confirmation, the resend or the dead letter.
            needs_report INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (channel_id, oplog_id)) WITHOUT ROWID;
        CREATE INDEX oplog_state ON oplog (state, channel_id, oplog_id);
        CREATE INDEX oplog_to_report ON oplog (channel_id, oplog_id) WHERE needs_report;
        -- The numbers of stored re-reads. A re-read whose acknowledgement was lost arrives again.
        CREATE TABLE reread (number INTEGER PRIMARY KEY);
        -- Suspended Sync IDs.
        CREATE TABLE suspended (biz_type TEXT PRIMARY KEY) WITHOUT ROWID;
        -- Recoveries and their progress; upto 0 before the first page.
        CREATE TABLE recovery (
            user_id TEXT NOT NULL, biz_type TEXT NOT NULL, next_after INTEGER NOT NULL, upto INTEGER NOT NULL,
            PRIMARY KEY (user_id, biz_type)) WITHOUT ROWID;
        -- The results of pings on each network.
        CREATE TABLE heartbeat (
            network TEXT PRIMARY KEY, good_seconds INTEGER NOT NULL, bad_seconds INTEGER NOT NULL,
            doubtful_seconds INTEGER NOT NULL) WITHOUT ROWID;
        """

    private static let step3 = """
        -- Subscription parameters; user_id is empty for the device.
        CREATE TABLE parameter (
            user_id TEXT NOT NULL, biz_type TEXT NOT NULL, name TEXT NOT NULL,
            -- 1 when the service stores it for all devices of the user, 0 when only this client does.
            is_server INTEGER NOT NULL,
            -- JSON; empty when the service must remove the value.
            value TEXT NOT NULL,
            -- The service has not replied.
            is_pending INTEGER NOT NULL,
            PRIMARY KEY (user_id, biz_type, name, is_server)) WITHOUT ROWID;
        """

    private static let step4 = """
        -- The last good login of each user. PasswordSeal.
        CREATE TABLE login (
            user_id TEXT PRIMARY KEY, salt BLOB NOT NULL, rounds INTEGER NOT NULL, sealed_session BLOB NOT NULL,
            -- Counted before a password is checked.
            failed_attempts INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        """

    private static let step2 = """
        -- Operations of users, in the order in which they are sent.
        CREATE TABLE operation (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            user_id TEXT NOT NULL,
            component TEXT NOT NULL, entity_key TEXT NOT NULL, name TEXT NOT NULL,
            -- Both encrypted like payloads; empty after the result.
            body BLOB NOT NULL, children BLOB NOT NULL,
            submitted_at_ms INTEGER NOT NULL,
            -- OperationState.
            state INTEGER NOT NULL,
            -- The number of sends since the state was `waiting`.
            sends INTEGER NOT NULL DEFAULT 0,
            done_at_ms INTEGER);
        CREATE INDEX operation_open ON operation (user_id, number) WHERE state < 3;
        CREATE INDEX operation_over ON operation (number) WHERE state = 3;
        CREATE TABLE operation_result (
            -- In the order in which the results became known.
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            operation_id TEXT NOT NULL UNIQUE,
            user_id TEXT NOT NULL,
            component TEXT NOT NULL, entity_key TEXT NOT NULL, name TEXT NOT NULL,
            is_accepted INTEGER NOT NULL, code INTEGER NOT NULL, level TEXT NOT NULL, message TEXT NOT NULL,
            request_id TEXT NOT NULL, at_ms INTEGER NOT NULL,
            -- Encrypted like payloads; NULL when there is none, or after the confirmation.
            imported BLOB,
            is_confirmed INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX operation_result_open ON operation_result (user_id, number) WHERE NOT is_confirmed;
        """

    private static let step5 = """
        -- A caller waits for the result: it is in no sequence of results.
        ALTER TABLE operation ADD COLUMN is_call INTEGER NOT NULL DEFAULT 0;
        """

    private static let step6 = """
        -- NULL for none.
        ALTER TABLE oplog ADD COLUMN conversation TEXT;
        CREATE INDEX oplog_conversation ON oplog (channel_id, conversation, oplog_id)
            WHERE conversation IS NOT NULL;
        -- The user has read the oplogs of a conversation up to here.
        CREATE TABLE read_mark (
            channel_id INTEGER NOT NULL REFERENCES channel (id), conversation TEXT NOT NULL, upto INTEGER NOT NULL,
            PRIMARY KEY (channel_id, conversation)) WITHOUT ROWID;
        """
}
