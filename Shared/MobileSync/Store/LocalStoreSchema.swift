import GRDB

/// The tables of the local store, and the steps that brought them there.
///
/// A released step is never edited; a change is a new step. A store with steps that this build does not know is
/// refused.
enum LocalStoreSchema {
    /// The steps in order.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 oplogs and sync points") { try $0.execute(sql: step1) }
        migrator.registerMigration("2 operations and their results") { try $0.execute(sql: step2) }
        migrator.registerMigration("3 subscription parameters") { try $0.execute(sql: step3) }
        return migrator
    }

    private static let step1 = """
        CREATE TABLE store (
            store_id TEXT NOT NULL, instance_id TEXT NOT NULL, device_id TEXT NOT NULL,
            -- PayloadCipher: NULL while payloads are stored as they are.
            key_check BLOB,
            -- What to add to the device's clock, as of the last connection.
            clock_offset_ms INTEGER,
            -- What to add to the device's clock to sign by; NULL: no gateway has refused a signature for its time.
            signing_offset_ms INTEGER,
            -- Taken when the service refused device_id, the app's; NULL before.
            own_device_id TEXT,
            -- What the device id belongs to at the service; sealed as payloads are.
            device_secret BLOB,
            -- Connections made.
            connections INTEGER NOT NULL DEFAULT 0,
            -- Where the device can be woken, for the next Connect; NULL: the app has not said.
            push_provider INTEGER, push_token TEXT);
        CREATE TABLE channel (
            id INTEGER PRIMARY KEY,
            kind INTEGER NOT NULL,
            -- Of a device's own channels: empty, or the former id that they were of.
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
            -- Not handed out for the first time from then on; 0: always.
            valid_until_ms INTEGER NOT NULL,
            -- The oplog that this one takes back; 0 for data.
            recalls INTEGER NOT NULL,
            -- A tombstone has taken it back; kept because the app had confirmed it.
            is_recalled INTEGER NOT NULL DEFAULT 0,
            -- It came by a re-read.
            is_replay INTEGER NOT NULL,
            -- The app has had it, or may have had it before it was deleted and read again.
            was_shown INTEGER NOT NULL,
            -- OplogState.
            state INTEGER NOT NULL DEFAULT 0,
            -- ResendLadder.State; counted before the app is given the oplog.
            hand_outs INTEGER NOT NULL DEFAULT 0,
            repeats INTEGER NOT NULL DEFAULT 0,
            -- The gateway has not recorded that it was confirmed, repeated or given up.
            needs_report INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (channel_id, oplog_id)) WITHOUT ROWID;
        CREATE INDEX oplog_state ON oplog (state, channel_id, oplog_id);
        CREATE INDEX oplog_to_report ON oplog (channel_id, oplog_id) WHERE needs_report;
        -- Numbers of re-reads that were taken: one that comes again, as its acknowledgement was lost, is known.
        CREATE TABLE reread (number INTEGER PRIMARY KEY);
        -- Business types that the app does not take now.
        CREATE TABLE suspended (biz_type TEXT PRIMARY KEY) WITHOUT ROWID;
        -- Business types that are being sent again, and how far that has come; upto 0: not known yet.
        CREATE TABLE recovery (
            user_id TEXT NOT NULL, biz_type TEXT NOT NULL, next_after INTEGER NOT NULL, upto INTEGER NOT NULL,
            PRIMARY KEY (user_id, biz_type)) WITHOUT ROWID;
        -- What heartbeat each network bears.
        CREATE TABLE heartbeat (
            network TEXT PRIMARY KEY, good_seconds INTEGER NOT NULL, bad_seconds INTEGER NOT NULL,
            doubtful_seconds INTEGER NOT NULL) WITHOUT ROWID;
        """

    private static let step3 = """
        -- Values of subscription parameters; of no user: of the device while nobody is bound.
        CREATE TABLE parameter (
            user_id TEXT NOT NULL, biz_type TEXT NOT NULL, name TEXT NOT NULL,
            -- Kept by the service for all devices of the user; otherwise by this one.
            is_server INTEGER NOT NULL,
            -- JSON; empty: the service is to forget it.
            value TEXT NOT NULL,
            -- The service has not answered.
            is_pending INTEGER NOT NULL,
            PRIMARY KEY (user_id, biz_type, name, is_server)) WITHOUT ROWID;
        """

    private static let step2 = """
        -- What the users did, in the order in which they go up.
        CREATE TABLE operation (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            user_id TEXT NOT NULL,
            component TEXT NOT NULL, entity_key TEXT NOT NULL, name TEXT NOT NULL,
            -- Both sealed as payloads are; empty once it is over.
            body BLOB NOT NULL, children BLOB NOT NULL,
            submitted_at_ms INTEGER NOT NULL,
            -- OperationState.
            state INTEGER NOT NULL,
            -- How often it has gone out since it was waiting.
            sends INTEGER NOT NULL DEFAULT 0,
            done_at_ms INTEGER);
        CREATE INDEX operation_open ON operation (user_id, number) WHERE state < 3;
        CREATE INDEX operation_over ON operation (number) WHERE state = 3;
        CREATE TABLE operation_result (
            -- In the order in which they became known.
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            operation_id TEXT NOT NULL UNIQUE,
            user_id TEXT NOT NULL,
            component TEXT NOT NULL, entity_key TEXT NOT NULL, name TEXT NOT NULL,
            is_accepted INTEGER NOT NULL, code INTEGER NOT NULL, level TEXT NOT NULL, message TEXT NOT NULL,
            request_id TEXT NOT NULL, at_ms INTEGER NOT NULL,
            -- Sealed as payloads are; NULL: none, or the app has confirmed the result.
            imported BLOB,
            is_confirmed INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX operation_result_open ON operation_result (user_id, number) WHERE NOT is_confirmed;
        """
}
