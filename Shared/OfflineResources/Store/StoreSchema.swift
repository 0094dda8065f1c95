import GRDB

/// The tables of the store, and the steps that brought them there.
///
/// A released step is never edited; a change is a new step. A store with steps that this build does not know is
/// refused.
enum StoreSchema {
    /// The steps in order.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 resources and edits") { db in
            try db.execute(sql: step1)
            try db.execute(sql: triggers)
        }
        return migrator
    }

    /// Of rows of `resource`: nothing waits to be sent for it.
    static let hasNoEdits =
        "NOT EXISTS (SELECT 1 FROM edit WHERE edit.owner = resource.owner AND edit.uri = resource.uri)"

    private static let step1 = """
        -- One row. run: starts of the app; change: of service versions, rises with each; used_bytes: by the triggers;
        -- key_check: NULL while bodies are stored as they are; batch_path: where the service takes many edits at once.
        CREATE TABLE store (
            run INTEGER NOT NULL, change INTEGER NOT NULL, used_bytes INTEGER NOT NULL, key_check BLOB,
            batch_path TEXT);
        INSERT INTO store VALUES (0, 0, 0, NULL, NULL);
        CREATE TABLE resource (
            id INTEGER PRIMARY KEY,
            -- A user's id; empty: nobody is signed in.
            owner TEXT NOT NULL,
            uri TEXT NOT NULL,
            -- Of the uri, without its query; and the collection's that it is in.
            path TEXT NOT NULL, parent TEXT NOT NULL,
            kind TEXT NOT NULL,
            -- The service's version; NULL: it has none, or has deleted it.
            body BLOB, content_type TEXT, etag TEXT,
            -- By the device's clock.
            fetched_at_ms INTEGER NOT NULL,
            -- By the service's clock: as of when the version was the newest.
            as_of_ms INTEGER NOT NULL,
            run INTEGER NOT NULL,
            -- EffectivePolicy.
            policy BLOB NOT NULL,
            -- PinPriority; NULL: not pinned.
            pin TEXT,
            -- The service has said that it changed; and it is to be fetched.
            is_invalid INTEGER NOT NULL DEFAULT 0, wants_refresh INTEGER NOT NULL DEFAULT 0,
            change INTEGER NOT NULL,
            UNIQUE (owner, uri));
        CREATE INDEX resource_path ON resource (owner, path);
        CREATE INDEX resource_parent ON resource (owner, parent);
        CREATE INDEX resource_to_refresh ON resource (owner) WHERE wants_refresh;
        -- The items of a collection, in the service's order.
        CREATE TABLE member (
            collection_id INTEGER NOT NULL REFERENCES resource (id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            uri TEXT NOT NULL,
            PRIMARY KEY (collection_id, position)) WITHOUT ROWID;
        CREATE INDEX member_uri ON member (uri);
        -- Edits in the order in which they were made.
        CREATE TABLE edit (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            owner TEXT NOT NULL,
            -- The Idempotency-Key.
            edit_id TEXT NOT NULL UNIQUE,
            uri TEXT NOT NULL,
            kind TEXT NOT NULL,
            body BLOB NOT NULL, content_type TEXT NOT NULL,
            -- Of the version that it was made on; NULL: not known.
            base_etag TEXT,
            conflict_policy TEXT NOT NULL,
            -- Sent without If-Match on purpose.
            is_unconditional INTEGER NOT NULL DEFAULT 0,
            -- EditState.
            state INTEGER NOT NULL DEFAULT 0,
            -- Its caller did not wait for the service.
            is_offline INTEGER NOT NULL,
            -- What the service had against it.
            status INTEGER, message TEXT);
        CREATE INDEX edit_uri ON edit (owner, uri, seq);
        -- Where what was created here has got its URI of the service's.
        CREATE TABLE alias (
            owner TEXT NOT NULL, local_uri TEXT NOT NULL, uri TEXT NOT NULL,
            PRIMARY KEY (owner, local_uri)) WITHOUT ROWID;
        -- Edits that were answered, of which the app has not been told.
        CREATE TABLE notice (seq INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, uri TEXT NOT NULL);

        """

    /// A row counts with its texts, its body and what SQLite needs around it.
    private static let triggers: String = ["resource", "edit"].map { table in
        func bytes(_ row: String) -> String { "300 + 2 * length(\(row).uri) + coalesce(length(\(row).body), 0)" }
        return """
            CREATE TRIGGER \(table)_added AFTER INSERT ON \(table) BEGIN
                UPDATE store SET used_bytes = used_bytes + \(bytes("new"));
            END;
            CREATE TRIGGER \(table)_gone AFTER DELETE ON \(table) BEGIN
                UPDATE store SET used_bytes = used_bytes - (\(bytes("old")));
            END;
            CREATE TRIGGER \(table)_changed AFTER UPDATE OF uri, body ON \(table) BEGIN
                UPDATE store SET used_bytes = used_bytes - (\(bytes("old"))) + \(bytes("new"));
            END;

            """
    }.joined()
}
