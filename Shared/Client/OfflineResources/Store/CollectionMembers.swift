import GRDB

/// The items of the cached collections.
struct CollectionMembers {
    let context: StoreContext
    let resources: ResourceTable

    /// The number of a collection's items, and whether all of them are cached.
    func presence(of collection: StoredResource, owner: String) throws -> (count: Int, isWhole: Bool) {
        let row = try Row.fetchOne(
            context.db.cachedStatement(
                sql: """
                    SELECT count(*), count(resource.id) FROM member
                    LEFT JOIN resource ON resource.owner = ? AND resource.uri = member.uri WHERE collection_id = ?
                    """), arguments: [owner, collection.id])
        let (members, present): (Int, Int) = (row?[0] ?? 0, row?[1] ?? 0)
        return (members, members == present)
    }

    /// The URIs of a collection's items, in the backend's order.
    func uris(of id: Int64) throws -> [String] {
        try String.fetchAll(
            context.db, sql: "SELECT uri FROM member WHERE collection_id = ? ORDER BY position", arguments: [id])
    }

    /// Replaces a collection's items.
    func replace(of id: Int64, with uris: [String]) throws {
        try context.db.execute(sql: "DELETE FROM member WHERE collection_id = ?", arguments: [id])
        for (position, uri) in uris.enumerated() { try add(uri, to: id, at: position) }
    }

    private func add(_ uri: String, to id: Int64, at position: Int) throws {
        try context.db.cachedStatement(sql: "INSERT INTO member VALUES (?, ?, ?)").execute(arguments: [
            id, position, uri,
        ])
    }

    /// Adds a created resource to its collection, if the whole collection is cached.
    func append(_ uri: ResourceURI, owner: String) throws {
        guard let row = try resources.row(ResourceURI(uri.parentPath), owner: owner), row.kind == .collection,
            try !uris(of: row.id).contains(uri.description)
        else { return }
        // The count is not the next position: deleted items leave gaps.
        let position = try Int.fetchOne(
            context.db, sql: "SELECT max(position) + 1 FROM member WHERE collection_id = ?", arguments: [row.id])
        try add(uri.description, to: row.id, at: position ?? 0)
    }

    /// Removes a resource from all collections that contain it.
    func removeFromCollections(_ uri: ResourceURI, owner: String) throws {
        try context.db.execute(
            sql: "DELETE FROM member WHERE uri = ? AND collection_id IN (SELECT id FROM resource WHERE owner = ?)",
            arguments: [uri.description, owner])
    }

    /// Whether a collection of a user contains the resource.
    func isMember(_ uri: String, owner: String) throws -> Bool {
        try Bool.fetchOne(
            context.db,
            sql: """
                SELECT EXISTS (SELECT 1 FROM member JOIN resource ON resource.id = collection_id
                    WHERE member.uri = ? AND owner = ?)
                """, arguments: [uri, owner]) ?? false
    }
}
