package org.mobilesync.internal.store;

import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.SyncDatabase;

/**
 * The tables of the local store and their migrations. A released migration is never edited; a change needs a new one.
 *
 * <p>The statements work with SQLite 3.18, which Android 8 has: no UPSERT, no RETURNING.
 */
final class StoreSchema {
    private static final String[][] MIGRATIONS = {{
        "CREATE TABLE store ("
            + " store_id TEXT NOT NULL, instance_id TEXT NOT NULL, device_id TEXT NOT NULL,"
            // The id that replaced device_id after the service refused it; NULL before.
            + " own_device_id TEXT,"
            + " device_secret BLOB NOT NULL,"
            // The count of connection attempts.
            + " connections INTEGER NOT NULL DEFAULT 0,"
            // Service time minus device time at the last connection; NULL before the first.
            + " clock_offset_ms INTEGER,"
            // Gateway time minus device time for signatures; NULL before the first refusal of a timestamp.
            + " signing_offset_ms INTEGER,"
            // The push token for the next Connect; NULL before the app has set one.
            + " push_provider INTEGER, push_token TEXT)",
        "CREATE TABLE channel ("
            + " id INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"
            // For device channels: empty, or the former device id of the channel.
            + " user_id TEXT NOT NULL, biz_type TEXT NOT NULL, sync_point INTEGER NOT NULL,"
            // Channel.completeFrom and completeUpto.
            + " complete_from INTEGER NOT NULL DEFAULT 0, complete_upto INTEGER NOT NULL DEFAULT 0,"
            + " UNIQUE (kind, user_id, biz_type))",
        "CREATE TABLE oplog ("
            + " channel_id INTEGER NOT NULL REFERENCES channel (id), oplog_id INTEGER NOT NULL,"
            + " payload BLOB NOT NULL, is_binary INTEGER NOT NULL, third_message_id TEXT NOT NULL,"
            + " created_at_ms INTEGER NOT NULL,"
            // No first hand-out from this time on; 0 for no limit.
            + " valid_until_ms INTEGER NOT NULL,"
            // The id of the oplog that this tombstone recalls; 0 for data.
            + " recalls INTEGER NOT NULL,"
            // Recalled by a tombstone; kept because the app had confirmed it.
            + " is_recalled INTEGER NOT NULL DEFAULT 0,"
            + " is_replay INTEGER NOT NULL,"
            // The app has had the oplog, or may have had it before it was deleted and read again.
            + " was_shown INTEGER NOT NULL,"
            // OplogState.
            + " state INTEGER NOT NULL,"
            // Counted before the app receives the oplog.
            + " hand_outs INTEGER NOT NULL DEFAULT 0, repeats INTEGER NOT NULL DEFAULT 0,"
            // The gateway has not recorded the confirmation, the resend or the dead letter.
            + " needs_report INTEGER NOT NULL DEFAULT 0,"
            + " PRIMARY KEY (channel_id, oplog_id)) WITHOUT ROWID",
        "CREATE INDEX oplog_state ON oplog (state, channel_id, oplog_id)",
        "CREATE INDEX oplog_to_report ON oplog (channel_id, oplog_id) WHERE needs_report",
        // The numbers of stored re-reads. A re-read whose acknowledgement was lost arrives again.
        "CREATE TABLE reread (number INTEGER PRIMARY KEY)",
        "CREATE TABLE suspended (biz_type TEXT PRIMARY KEY) WITHOUT ROWID",
        // The results of pings on each network; 0 for unknown.
        "CREATE TABLE heartbeat (network TEXT PRIMARY KEY, good_seconds INTEGER NOT NULL,"
            + " bad_seconds INTEGER NOT NULL, doubtful_seconds INTEGER NOT NULL) WITHOUT ROWID",
        // Operations of users, in the order in which they are sent.
        "CREATE TABLE operation ("
            + " number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, user_id TEXT NOT NULL,"
            + " component TEXT NOT NULL, entity_key TEXT NOT NULL, name TEXT NOT NULL,"
            // The encoded DeviceOperation; empty after the result.
            + " message BLOB NOT NULL,"
            // OperationState.
            + " state INTEGER NOT NULL,"
            // The count of sends since the state was WAITING.
            + " sends INTEGER NOT NULL DEFAULT 0, done_at_ms INTEGER)",
        "CREATE INDEX operation_open ON operation (user_id, number) WHERE state < 3",
        "CREATE TABLE operation_result ("
            // In the order in which the results became known.
            + " number INTEGER PRIMARY KEY AUTOINCREMENT, operation_id TEXT NOT NULL UNIQUE, user_id TEXT NOT NULL,"
            + " component TEXT NOT NULL, entity_key TEXT NOT NULL, name TEXT NOT NULL,"
            + " is_accepted INTEGER NOT NULL, code INTEGER NOT NULL, level TEXT NOT NULL, message TEXT NOT NULL,"
            + " request_id TEXT NOT NULL, at_ms INTEGER NOT NULL,"
            // The tenant's JSON; NULL when there is none, or after the confirmation.
            + " imported TEXT, is_confirmed INTEGER NOT NULL DEFAULT 0)",
        "CREATE INDEX operation_result_open ON operation_result (user_id, number) WHERE NOT is_confirmed",
    }, {
        // A value that only the store's key can decrypt; NULL while payloads are plain.
        "ALTER TABLE store ADD COLUMN key_check BLOB",
        // Subscription parameters; user_id is empty for the device.
        "CREATE TABLE parameter ("
            + " user_id TEXT NOT NULL, biz_type TEXT NOT NULL, name TEXT NOT NULL,"
            // 1 when the service stores it for all devices of the user, 0 when only this client does.
            + " is_server INTEGER NOT NULL,"
            // JSON; empty when the service must remove the value.
            + " value TEXT NOT NULL,"
            // The service has not replied.
            + " is_pending INTEGER NOT NULL,"
            + " PRIMARY KEY (user_id, biz_type, name, is_server)) WITHOUT ROWID",
        // Recoveries and their progress; upto 0 before the first page.
        "CREATE TABLE recovery ("
            + " user_id TEXT NOT NULL, biz_type TEXT NOT NULL, next_after INTEGER NOT NULL, upto INTEGER NOT NULL,"
            + " PRIMARY KEY (user_id, biz_type)) WITHOUT ROWID",
    }, {
        // The conversation that the backend named; NULL for none.
        "ALTER TABLE oplog ADD COLUMN conversation TEXT",
        "CREATE INDEX oplog_conversation ON oplog (channel_id, conversation, oplog_id) WHERE conversation IS NOT NULL",
        // The user has read each conversation up to this oplog id.
        "CREATE TABLE read_mark ("
            + " channel_id INTEGER NOT NULL REFERENCES channel (id), conversation TEXT NOT NULL, upto INTEGER NOT NULL,"
            + " PRIMARY KEY (channel_id, conversation)) WITHOUT ROWID",
    }};

    private StoreSchema() {}

    /**
     * Brings the tables to this version, in one transaction for each migration.
     *
     * @return false for a file of a newer version, which stays unchanged
     */
    static boolean migrate(SyncDatabase database) throws DatabaseException {
        long version = database.query(row -> row.getLong(0), "PRAGMA user_version").get(0);
        if (version > MIGRATIONS.length) return false;
        for (int step = (int) version; step < MIGRATIONS.length; step++) {
            int next = step + 1;
            database.inTransaction(() -> {
                for (String statement : MIGRATIONS[next - 1]) database.execute(statement);
                database.execute("PRAGMA user_version = " + next);
                return null;
            });
        }
        return true;
    }
}
