import GRDB

/// Giving up what is pending.
extension EntityTransaction {
    /// Restores the server's version of a row and its children; what it has not heard of is gone.
    ///
    /// - Returns: the row as it is now; nil: it is gone.
    /// - Throws: `EntityError.objectNotFound`.
    func cancel(_ entity: Entity) throws(EntityError) -> StoredRow? {
        let type = try schema.type(entity.type.name)
        let key = try entity.savedKey()
        return try step("cancelling") {
            guard let row = try stored(type.name, key) else {
                throw EntityError(.objectNotFound, "there is no \(type.name) of this key")
            }
            var roots: Set<String> = []
            try cancelFamily(of: row, type, roots: &roots)
            try cancelAnswerless(roots)
            return try stored(type.name, key)
        }
    }

    /// Does so with everything that is pending, the app's own operations included.
    ///
    /// - Parameter group: of these types only; nil: of all.
    func cancelAll(group: String?) throws(EntityError) {
        try step("cancelling all") {
            var roots: Set<String> = []
            for type in schema.synchronised(group: group) {
                for row in try pendingRows(of: type) { try cancelOwn(row, type, roots: &roots) }
                let calls = try operations(where: "component = ? AND kind = 'O'", [type.name])
                try setCancelled(calls.map(\.rootID))
            }
            try cancelAnswerless(roots)
        }
    }

    private func cancelFamily(of row: StoredRow, _ type: EntityType, roots: inout Set<String>) throws {
        for relationship in type.relationships {
            let childType = try schema.type(relationship.childType)
            for child in try childRows(relationship, of: row, type) where child.state.isPending {
                try cancelFamily(of: child, childType, roots: &roots)
            }
        }
        if let row = try stored(type.name, row.key) { try cancelOwn(row, type, roots: &roots) }
    }

    private func cancelOwn(_ old: StoredRow, _ type: EntityType, roots: inout Set<String>) throws {
        var row = try stored(type.name, old.key) ?? old
        let before = row
        if let id = row.operationID, let operation = try operation(id) { roots.insert(operation.rootID) }
        switch row.state.cancel() {
        case .nothing: break
        case .rowRemoved: try remove(before, of: type)
        case .restored:
            row.fields = row.original ?? row.fields
            row.endEdit()
            try write(&row, of: type, replacing: before)
        }
    }

    /// Has those submissions taken back of which no row waits for the answer any more.
    private func cancelAnswerless(_ roots: Set<String>) throws {
        for root in roots.sorted() {
            let parts = try operations(where: "root_id = ?", [root])
            let isAwaited = try parts.contains { part in
                switch part.kind {
                case .other, .logRecords: true
                case .parent: false
                case .create, .update, .delete:
                    try store.tables[part.component] != nil
                        && stored(part.component, part.key)?.operationID == part.id
                }
            }
            if !isAwaited { try setCancelled([root]) }
        }
    }

    private func setCancelled(_ roots: [String]) throws {
        for root in roots {
            try db.execute(
                sql: "UPDATE operation SET is_cancelled = 1 WHERE id = ? AND parent_id IS NULL", arguments: [root])
        }
    }

    /// Roots that the submitter is still to be asked for.
    func cancelledRoots() throws -> [String] {
        try String.fetchAll(
            db, sql: "SELECT id FROM operation WHERE is_cancelled AND parent_id IS NULL ORDER BY position")
    }

    /// These will not be sent: nobody answers them.
    func dropRoots(_ ids: [String]) throws {
        for id in ids { try db.execute(sql: "DELETE FROM operation WHERE root_id = ?", arguments: [id]) }
    }

    /// The answers of these may still come: what the server did then is taken as an import.
    func keepRoots(_ ids: [String]) throws {
        for id in ids {
            try db.execute(
                sql: "UPDATE operation SET is_cancelled = 2 WHERE id = ? AND is_cancelled = 1", arguments: [id])
        }
    }
}
