import GRDB

/// Cancels pending changes.
struct ChangeCanceller {
    private let context: TransactionContext
    private let rows: RowStore
    private let operations: PendingOperationStore

    init(context: TransactionContext) {
        self.context = context
        rows = RowStore(context: context)
        operations = PendingOperationStore(context: context)
    }

    /// Restores the server's version of a row and its children. Rows that the server has never received are removed.
    ///
    /// - Returns: the row after the cancellation; nil when it was removed.
    /// - Throws: `EntityError.objectNotFound`.
    func cancel(_ entity: Entity) throws -> StoredRow? {
        let type = try context.schema.type(entity.type.name)
        let key = try entity.savedKey()
        guard let row = try rows.stored(type.name, key) else {
            throw EntityError(.objectNotFound, "no row of \(type.name) has this key")
        }
        var roots: Set<String> = []
        try cancelFamily(of: row, type, roots: &roots)
        try cancelAnswerless(roots)
        return try rows.stored(type.name, key)
    }

    /// Restores the server's version of a row, without its children.
    ///
    /// - Returns: the row after the cancellation; nil when it was removed.
    func cancelOnly(_ row: StoredRow, _ type: EntityType) throws -> StoredRow? {
        var roots: Set<String> = []
        try cancelOwn(row, type, roots: &roots)
        try cancelAnswerless(roots)
        return try rows.stored(type.name, row.key)
    }

    /// Cancels all pending changes of these types and the operations that the app performed.
    func cancelAll(of types: [EntityType]) throws {
        var roots: Set<String> = []
        for type in types {
            for row in try rows.pendingRows(of: type) { try cancelOwn(row, type, roots: &roots) }
            let calls = try operations.all(where: "component = ? AND kind = 'O'", [type.name])
            try operations.setCancelled(calls.map(\.rootID))
        }
        try cancelAnswerless(roots)
    }

    private func cancelFamily(of row: StoredRow, _ type: EntityType, roots: inout Set<String>) throws {
        for relationship in type.relationships {
            let childType = try context.schema.type(relationship.childType)
            for child in try rows.childRows(relationship, of: row, type) where child.state.isPending {
                try cancelFamily(of: child, childType, roots: &roots)
            }
        }
        if let row = try rows.stored(type.name, row.key) { try cancelOwn(row, type, roots: &roots) }
    }

    private func cancelOwn(_ old: StoredRow, _ type: EntityType, roots: inout Set<String>) throws {
        var row = try rows.stored(type.name, old.key) ?? old
        let before = row
        if let id = row.operationID, let operation = try operations.find(id) { roots.insert(operation.rootID) }
        switch row.state.cancel() {
        case .nothing: break
        case .rowRemoved: try rows.remove(before, of: type)
        case .restored:
            row.fields = row.original ?? row.fields
            row.endEdit()
            try rows.write(&row, of: type, replacing: before)
        }
    }

    /// Marks submissions as cancelled when no row waits for their result any more.
    private func cancelAnswerless(_ roots: Set<String>) throws {
        for root in roots.sorted() {
            let parts = try operations.all(where: "root_id = ?", [root])
            let isAwaited = try parts.contains { part in
                switch part.kind {
                case .other, .logRecords: true
                case .parent: false
                case .create, .update, .delete:
                    try context.tables[part.component] != nil
                        && rows.stored(part.component, part.key)?.operationID == part.id
                }
            }
            if !isAwaited { try operations.setCancelled([root]) }
        }
    }
}
