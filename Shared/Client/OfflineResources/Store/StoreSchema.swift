import GRDB

/// The tables of the store and their migrations.
///
/// A released migration never changes; a change is a new migration. A store with migrations that this build does not
/// know is refused.
enum StoreSchema {
    /// The migrations in order.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 resources and edits") { db in
            try db.execute(sql: step1)
            try db.execute(sql: triggers)
        }
        migrator.registerMigration("2 header fields of edits") { db in
            // JSON of ResourceHeaders; NULL: none.
            try db.execute(sql: "ALTER TABLE edit ADD COLUMN headers BLOB")
        }
        migrator.registerMigration("3 transfers of files") { db in try db.execute(sql: step3) }
        return migrator
    }

    /// A condition on rows of `resource`: the resource has no edits.
    static let hasNoEdits =
        "NOT EXISTS (SELECT 1 FROM edit WHERE edit.owner = resource.owner AND edit.uri = resource.uri)"

    /// The rank of a row of `resource` by its pin; the most urgent first (`PinPriority`).
    static let pinRank: String = {
        let cases = PinPriority.allCases.map { "WHEN '\($0.rawValue)' THEN \(PinPriority.rank(of: $0))" }
        return "CASE resource.pin \(cases.joined(separator: " ")) ELSE \(PinPriority.rank(of: nil)) END"
    }()

    private static let step1 = """
        -- One row. run: the starts of the app; change: rises with each stored version; used_bytes: by the triggers;
        -- key_check: NULL while bodies are not encrypted; batch_path: the URI that accepts batches of edits.
        CREATE TABLE store (
            run INTEGER NOT NULL, change INTEGER NOT NULL, used_bytes INTEGER NOT NULL, key_check BLOB,
            batch_path TEXT);
        INSERT INTO store VALUES (0, 0, 0, NULL, NULL);
        CREATE TABLE resource (
            id INTEGER PRIMARY KEY,
            -- A user's id; empty: no user is signed in.
            owner TEXT NOT NULL,
            uri TEXT NOT NULL,
            -- The uri without its query, and the path of the collection that contains it.
            path TEXT NOT NULL, parent TEXT NOT NULL,
            kind TEXT NOT NULL,
            -- The backend's version; NULL: it has none, or has deleted it.
            body BLOB, content_type TEXT, etag TEXT,
            -- By the device's clock.
            fetched_at_ms INTEGER NOT NULL,
            -- By the backend's clock: the time at which the version was current.
            as_of_ms INTEGER NOT NULL,
            run INTEGER NOT NULL,
            -- EffectivePolicy.
            policy BLOB NOT NULL,
            -- PinPriority; NULL: not pinned.
            pin TEXT,
            -- The copy counts as expired; a refresh is requested.
            is_invalid INTEGER NOT NULL DEFAULT 0, wants_refresh INTEGER NOT NULL DEFAULT 0,
            change INTEGER NOT NULL,
            UNIQUE (owner, uri));
        CREATE INDEX resource_path ON resource (owner, path);
        CREATE INDEX resource_parent ON resource (owner, parent);
        CREATE INDEX resource_to_refresh ON resource (owner) WHERE wants_refresh;
        -- The items of a collection, in the backend's order.
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
            -- The entity tag of the version that the edit is based on; NULL: not known.
            base_etag TEXT,
            conflict_policy TEXT NOT NULL,
            -- Sent without If-Match on purpose.
            is_unconditional INTEGER NOT NULL DEFAULT 0,
            -- EditState.
            state INTEGER NOT NULL DEFAULT 0,
            -- Its caller did not wait for the backend.
            is_offline INTEGER NOT NULL,
            -- The backend's refusal.
            status INTEGER, message TEXT);
        CREATE INDEX edit_uri ON edit (owner, uri, seq);
        -- Former URIs of resources that the backend has named, and their new URIs.
        CREATE TABLE alias (
            owner TEXT NOT NULL, local_uri TEXT NOT NULL, uri TEXT NOT NULL,
            PRIMARY KEY (owner, local_uri)) WITHOUT ROWID;
        -- Answered edits that the app has not been notified of.
        CREATE TABLE notice (seq INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, uri TEXT NOT NULL);

        """

    private static let step3 = """
        -- Transfers of files that can be resumed.
        CREATE TABLE transfer (
            owner TEXT NOT NULL,
            -- FileTransferTable.Direction.
            direction TEXT NOT NULL,
            uri TEXT NOT NULL,
            -- A download has the version to which the part of the file belongs, the path of the part, and its size on
            -- the disk. An upload has in etag the version that it replaces; NULL: any.
            etag TEXT, part TEXT, offset INTEGER,
            -- The size of the whole file; NULL: not known. The time of the file's last change, of an upload.
            total INTEGER, modified_at_ms INTEGER,
            -- An upload has the URI that accepts the rest, and the type of the content.
            upload_uri TEXT, content_type TEXT,
            PRIMARY KEY (owner, direction, uri)) WITHOUT ROWID;
        """

    /// A row counts with its texts, its body and SQLite's approximate overhead.
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
