import GRDB

/// The rows of all entity types. A change of a row also updates its parents' state of pending children.
struct RowStore {
    let context: TransactionContext

    /// The row with a key, also a deleted one; nil when there is none.
    func stored(_ typeName: String, _ key: String) throws -> StoredRow? {
        try context.table(typeName).row(key, in: context.db, cipher: context.cipher)
    }

    /// The row, unless it is deleted.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    func visibleRow(_ type: EntityType, _ key: String) throws -> StoredRow {
        guard let row = try stored(type.name, key), !row.state.isRemoved else {
            throw EntityError(.objectNotFound, "no row of \(type.name) has this key")
        }
        return row
    }

    /// Writes a row and updates the parents' state of pending children.
    ///
    /// - Parameter old: the former row; nil for a new row.
    func write(_ row: inout StoredRow, of type: EntityType, replacing old: StoredRow?) throws {
        if old == nil { row.state.hasPendingChildren = try hasPendingChildren(row, of: type) }
        try context.table(type.name).write(row, isNew: old == nil, in: context.db, cipher: context.cipher)
        try updateParents(of: type, [old?.fields, row.fields])
    }

    /// Deletes a row.
    func remove(_ row: StoredRow, of type: EntityType) throws {
        try context.table(type.name).remove(row.key, in: context.db)
        try updateParents(of: type, [row.fields])
    }

    /// The next number of the order of changes.
    func nextChangeOrder() throws -> Int64 {
        try Int64.fetchOne(
            context.db.cachedStatement(sql: "UPDATE store SET last_change = last_change + 1 RETURNING last_change"))
            ?? 0
    }

    /// The rows that are pending or have pending children, the oldest change first.
    func pendingRows(of type: EntityType) throws -> [StoredRow] {
        try context.table(type.name).rows(
            where: "pending_change <> 'N' ORDER BY change_order", [], in: context.db, cipher: context.cipher)
    }

    // MARK: Relatives

    /// The children of a row in a relationship.
    func childRows(_ relationship: EntityRelationship, of row: StoredRow, _ type: EntityType) throws -> [StoredRow] {
        let key = try FieldColumn.value(of: row.fields[type.keyAttribute] ?? .null)
        return try context.table(relationship.childType).rows(
            where: "\(EntityTable.column(relationship.foreignKey)) = ? ORDER BY change_order, id", [key],
            in: context.db, cipher: context.cipher)
    }

    /// The parent that a child names; nil when it is not stored.
    func parentRow(_ link: EntitySchema.ParentLink, of fields: [String: AttributeValue]) throws -> StoredRow? {
        guard let value = fields[link.relationship.foreignKey], value != .null else { return nil }
        return try stored(link.parentType, try context.schema.type(link.parentType).keyText(of: value))
    }

    private func hasPendingChildren(_ row: StoredRow, of type: EntityType) throws -> Bool {
        let key = try FieldColumn.value(of: row.fields[type.keyAttribute] ?? .null)
        for relationship in type.relationships {
            let statement = try context.db.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM \(EntityTable.name(of: relationship.childType))
                    WHERE \(EntityTable.column(relationship.foreignKey)) = ? AND pending_change <> 'N')
                    """)
            if try Bool.fetchOne(statement, arguments: [key]) == true { return true }
        }
        return false
    }

    private func updateParents(of type: EntityType, _ versions: [[String: AttributeValue]?]) throws {
        for link in context.schema.parents(of: type.name) {
            let foreignKeys = Set(versions.compactMap { $0?[link.relationship.foreignKey] })
            for value in foreignKeys {
                guard let old = try parentRow(link, of: [link.relationship.foreignKey: value]) else { continue }
                let parentType = try context.schema.type(link.parentType)
                let isPending = try hasPendingChildren(old, of: parentType)
                guard old.state.hasPendingChildren != isPending else { continue }
                var parent = old
                parent.state.hasPendingChildren = isPending
                if parent.changeOrder == 0, isPending { parent.changeOrder = try nextChangeOrder() }
                try write(&parent, of: parentType, replacing: old)
            }
        }
    }
}
