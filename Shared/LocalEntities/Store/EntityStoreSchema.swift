import GRDB

/// The tables of an entity store beside those of its types, and the steps that brought them there.
///
/// A released step is never edited; a change is a new step. A store with steps that this build does not know is
/// refused.
enum EntityStoreSchema {
    /// The steps in order.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 entities") { try $0.execute(sql: step1) }
        return migrator
    }

    private static let step1 = """
        CREATE TABLE store (
            user_id TEXT NOT NULL,
            -- StoreCipher: NULL while attributes are stored as they are.
            key_check BLOB,
            -- StoredRow.changeOrder of the last change.
            last_change INTEGER NOT NULL DEFAULT 0,
            -- LocalKeyGenerator: ids up to this are taken.
            last_local_id INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE entity_type (
            name TEXT PRIMARY KEY,
            -- TableDeclaration, as JSON.
            declaration TEXT NOT NULL,
            -- Not: its data was cleaned, and what still comes for it is passed over.
            is_subscribed INTEGER NOT NULL DEFAULT 1,
            -- All that the server has is to be asked for, as the rows were deleted.
            needs_recovery INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        -- What was submitted and is not answered; parts of one submission have one root.
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
            -- Sealed as attributes are.
            body BLOB NOT NULL,
            created_at_ms INTEGER NOT NULL,
            -- The submitter has it; counts in the root.
            is_sent INTEGER NOT NULL DEFAULT 0,
            -- To be taken back from the submitter; counts in the root.
            is_cancelled INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX operation_root ON operation (root_id);
        CREATE TABLE log_record (
            message_id TEXT PRIMARY KEY,
            component TEXT NOT NULL, entity_key TEXT NOT NULL, code INTEGER NOT NULL, level TEXT NOT NULL,
            -- Sealed as attributes are.
            message BLOB NOT NULL,
            operation TEXT NOT NULL, request_id TEXT NOT NULL, timestamp_ms INTEGER NOT NULL,
            -- Written here, and not accepted by the server.
            is_own INTEGER NOT NULL,
            -- The operation that it is on its way in.
            submission_id TEXT);
        CREATE INDEX log_record_time ON log_record (timestamp_ms);
        -- Deletions with the server's counter, so that an older import does not bring a row back.
        CREATE TABLE tombstone (
            type_name TEXT NOT NULL, entity_key TEXT NOT NULL, counter INTEGER NOT NULL, at_ms INTEGER NOT NULL,
            PRIMARY KEY (type_name, entity_key)) WITHOUT ROWID;
        -- Keys that the server granted; next is the first that is not used.
        CREATE TABLE key_range (
            first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, next_id INTEGER NOT NULL,
            -- The server knows that all of it is used.
            is_reported INTEGER NOT NULL DEFAULT 0);
        """
}
