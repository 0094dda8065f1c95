import Foundation
import GRDB
import MobileSync

/// The rows of the resources: the backend's versions, and resources that have only edits.
struct ResourceTable {
    let context: StoreContext

    private static let columns = [
        "id", "uri", "kind", "body", "content_type", "etag", "fetched_at_ms", "as_of_ms", "run", "policy", "pin",
        "is_invalid", "change",
    ].map { "resource.\($0)" }.joined(separator: ", ")

    // MARK: Reading

    /// The row of a resource; nil when there is none.
    func row(_ uri: ResourceURI, owner: String) throws -> StoredResource? {
        let row = try Row.fetchOne(
            context.db.cachedStatement(
                sql: "SELECT \(Self.columns) FROM resource WHERE owner = ? AND uri = ?"),
            arguments: [owner, uri.description])
        return try row.map(decoded)
    }

    /// The cached items of a collection in the backend's order.
    func items(of collectionID: Int64, owner: String) throws -> [StoredResource] {
        try Row.fetchAll(
            context.db,
            sql: """
                SELECT \(Self.columns) FROM member
                JOIN resource ON resource.owner = ? AND resource.uri = member.uri
                WHERE collection_id = ? ORDER BY position
                """, arguments: [owner, collectionID]
        ).map(decoded)
    }

    /// The cached items and files one level below a path, sorted by URI.
    func children(of path: String, owner: String) throws -> [StoredResource] {
        try Row.fetchAll(
            context.db,
            sql: "SELECT \(Self.columns) FROM resource WHERE owner = ? AND parent = ? AND kind <> ? ORDER BY uri",
            arguments: [owner, path, ResourceKind.collection.rawValue]
        ).map(decoded)
    }

    private func decoded(_ row: Row) throws -> StoredResource {
        let id: Int64 = row["id"]
        return StoredResource(
            id: id, uri: try ResourceURI(row["uri"]), kind: ResourceKind(rawValue: row["kind"]) ?? .item,
            body: try (row["body"] as Data?).map { try context.opened($0, "resource/\(id)") },
            contentType: row["content_type"], etag: row["etag"],
            fetchedAt: Date(milliseconds: row["fetched_at_ms"]), asOf: Date(milliseconds: row["as_of_ms"]),
            run: row["run"], policy: try StoreContext.policy(row["policy"]),
            pin: (row["pin"] as String?).flatMap(PinPriority.init), isInvalid: row["is_invalid"],
            change: row["change"])
    }

    // MARK: Changing

    /// Inserts an empty row for a resource.
    func insert(_ uri: ResourceURI, kind: ResourceKind, owner: String) throws -> Int64 {
        try context.db.execute(
            sql: """
                INSERT INTO resource (owner, uri, path, parent, kind, fetched_at_ms, as_of_ms, run, policy, change)
                VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, ?)
                """,
            arguments: [
                owner, uri.description, uri.path, uri.parentPath, kind.rawValue, context.run,
                try StoreContext.data(.libraryDefault(of: kind)), try context.countChange(),
            ])
        return context.db.lastInsertedRowID
    }

    /// Deletes the local copy, unless it has edits.
    ///
    /// - Returns: whether a copy was deleted.
    @discardableResult
    func evict(_ uri: ResourceURI, owner: String) throws -> Bool {
        try context.db.execute(
            sql: "DELETE FROM resource WHERE owner = ? AND uri = ? AND \(StoreSchema.hasNoEdits)",
            arguments: [owner, uri.description])
        return context.db.changesCount > 0
    }

    /// Deletes all copies of a user that have no edits.
    func evictAll(owner: String) throws {
        try context.db.execute(
            sql: "DELETE FROM resource WHERE owner = ? AND \(StoreSchema.hasNoEdits)", arguments: [owner])
    }

    /// Deletes the row of a resource that has neither a version of the backend nor an edit.
    func removeIfNothing(_ uri: ResourceURI, owner: String) throws {
        try context.db.execute(
            sql: """
                DELETE FROM resource WHERE owner = ? AND uri = ? AND body IS NULL AND kind <> 'collection'
                    AND \(StoreSchema.hasNoEdits)
                """, arguments: [owner, uri.description])
    }
}
