import GRDB

/// The tables of an entity store, except those of its types, and their migrations.
///
/// A released migration never changes; a change is a new migration. A store with migrations that this build does not
/// know is refused.
enum EntityStoreSchema {
    /// The migrations in order.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 entities") { try $0.execute(sql: step1) }
        migrator.registerMigration("2 base versions") { db in
            for name in try String.fetchAll(db, sql: "SELECT name FROM entity_type") {
                for column in EntityTable.baseColumns {
                    try db.execute(sql: "ALTER TABLE \(EntityTable.name(of: name)) ADD COLUMN \(column)")
                }
            }
            // For `hasLogRecords` in queries.
            try db.execute(sql: "CREATE INDEX log_record_row ON log_record (component, entity_key)")
        }
        return migrator
    }

    private static let step1 = """
        CREATE TABLE store (
            user_id TEXT NOT NULL,
            -- StoreCipher: NULL while attributes are not encrypted.
            key_check BLOB,
            -- StoredRow.changeOrder of the last change.
            last_change INTEGER NOT NULL DEFAULT 0,
            -- LocalKeyGenerator: ids up to this one are reserved.
            last_local_id INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE entity_type (
            name TEXT PRIMARY KEY,
            -- TableDeclaration, as JSON.
            declaration TEXT NOT NULL,
            -- 0: its data was deleted, and imports for it are ignored.
            is_subscribed INTEGER NOT NULL DEFAULT 1,
            -- 1: the rows were deleted, and a recovery must be requested.
            needs_recovery INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        -- Submitted operations without a result. The parts of one submission have the same root.
        CREATE TABLE operation (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            root_id TEXT NOT NULL,
            -- NULL in the root.
            parent_id TEXT,
            component TEXT NOT NULL,
            entity_key TEXT NOT NULL,
            name TEXT NOT NULL,
            -- PendingOperation.Kind.
            kind TEXT NOT NULL,
            -- Encrypted like attributes.
            body BLOB NOT NULL,
            created_at_ms INTEGER NOT NULL,
            -- The submitter has it; valid in the root.
            is_sent INTEGER NOT NULL DEFAULT 0,
            -- 1: to be withdrawn from the submitter; 2: too late, its result can still arrive. Valid in the root.
            is_cancelled INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX operation_root ON operation (root_id);
        CREATE TABLE log_record (
            message_id TEXT PRIMARY KEY,
            component TEXT NOT NULL, entity_key TEXT NOT NULL, code INTEGER NOT NULL, level TEXT NOT NULL,
            -- Encrypted like attributes.
            message BLOB NOT NULL,
            operation TEXT NOT NULL, request_id TEXT NOT NULL, timestamp_ms INTEGER NOT NULL,
            -- Written here and not accepted by the server.
            is_own INTEGER NOT NULL,
            -- The operation that sends it.
            submission_id TEXT);
        CREATE INDEX log_record_time ON log_record (timestamp_ms);
        -- Deletions with the server's counter, so that an older import does not restore a row.
        CREATE TABLE tombstone (
            type_name TEXT NOT NULL, entity_key TEXT NOT NULL, counter INTEGER NOT NULL, at_ms INTEGER NOT NULL,
            PRIMARY KEY (type_name, entity_key)) WITHOUT ROWID;
        -- Keys that the server granted; next_id is the first unused one.
        CREATE TABLE key_range (
            first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, next_id INTEGER NOT NULL,
            -- The server knows that all its keys are used.
            is_reported INTEGER NOT NULL DEFAULT 0);
        """
}
