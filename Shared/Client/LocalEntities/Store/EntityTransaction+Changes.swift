extension EntityTransaction {
    /// Stores a new row and its children; it is pending until the server has accepted it.
    ///
    /// - Throws: `EntityError`: `wrongDataType`; `persistence` when a row with this key exists.
    public func create(_ entity: inout Entity) throws(EntityError) {
        var created = entity
        try step("creating") {
            let type = created.type
            let fields = try declared(type).checked(created.fields)
            let key = try type.keyText(of: fields[type.keyAttribute])
            let old = try rows.stored(type.name, key)
            var row = old ?? StoredRow(key: key, fields: fields, state: .localOnly)
            if old != nil {
                guard row.state.recreate() else {
                    throw EntityError(.persistence, "a row of \(type.name) with this key exists")
                }
            } else if !type.isLocalOnly {
                row.state = .created()
                row.changeOrder = try rows.nextChangeOrder()
            }
            row.fields = fields
            try rows.write(&row, of: type, replacing: old)
            created.load(row)
            try saveChildren(of: &created)
        }
        entity = created
    }

    /// Stores the changes that were made in memory, and the children. Unchanged attributes keep their stored values.
    ///
    /// - Throws: `EntityError`: `objectNotFound`, `wrongDataType`, `persistence` for a changed key.
    public func update(_ entity: inout Entity) throws(EntityError) {
        var updated = entity
        try step("updating") {
            let type = try declared(updated.type)
            let changes = updated.changedFields
            let key = try updated.savedKey()
            let old = try rows.visibleRow(type, key)
            var row = old
            row.fields = try type.checked(old.fields.merging(changes) { $1 })
            guard row.fields[type.keyAttribute] == old.fields[type.keyAttribute] else {
                throw EntityError(.persistence, "the key of a \(type.name) cannot be changed")
            }
            if row.fields != old.fields {
                if !type.isLocalOnly { try beginEdit(&row, from: old) }
                try rows.write(&row, of: type, replacing: old)
            }
            updated.load(row)
            try saveChildren(of: &updated)
        }
        entity = updated
    }

    /// Deletes a row and its children. They are pending until the server has accepted it; rows that the server has
    /// never received are removed at once.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func delete(_ entity: inout Entity) throws(EntityError) {
        var deleted = entity
        try step("deleting") {
            let type = try declared(deleted.type)
            let key = try deleted.savedKey()
            if let row = try delete(try rows.visibleRow(type, key), of: type) {
                deleted.load(row)
            } else {
                deleted.markRemoved(.localOnly)
            }
        }
        entity = deleted
    }

    /// Creates a new row or updates a changed one, and does the same with its children.
    ///
    /// - Throws: as `create` and `update`.
    public func save(_ entity: inout Entity) throws(EntityError) {
        if entity.isNew { try create(&entity) } else { try update(&entity) }
    }

    // MARK: Parts

    /// The store's own declaration of the type.
    private func declared(_ type: EntityType) throws(EntityError) -> EntityType { try schema.type(type.name) }

    /// Marks a row as changed by the app.
    private func beginEdit(_ row: inout StoredRow, from old: StoredRow) throws {
        var before = old
        if old.state.ownChange == .nothing {
            before.beginEdit(order: try rows.nextChangeOrder())
        } else if old.state.replayFailure == old.state.replayCounter, old.state.replayFailure > 0 {
            // The app has seen the refusal and the server's version, so its new edit is based on that version, and does
            // not undo what only others have changed.
            before.takeTheirs()
            for (name, theirs) in before.fields where row.fields[name] == old.fields[name] { row.fields[name] = theirs }
            before.rebase()
        }
        (row.original, row.base, row.hasConflict) = (before.original, before.base, before.hasConflict)
        (row.baseCounter, row.changeOrder) = (before.baseCounter, before.changeOrder)
        guard row.state.update() else {
            throw EntityError(.objectNotFound, "the row is deleted")
        }
    }

    /// Deletes an existing row, children first.
    ///
    /// - Returns: the pending row; nil when it was removed.
    private func delete(_ old: StoredRow, of type: EntityType) throws -> StoredRow? {
        for relationship in type.relationships {
            let childType = try schema.type(relationship.childType)
            for child in try rows.childRows(relationship, of: old, type) where !child.state.isRemoved {
                _ = try delete(child, of: childType)
            }
        }
        // The deletion of the children has changed the row's state.
        let current = try rows.stored(type.name, old.key) ?? old
        guard !type.isLocalOnly else {
            try rows.remove(current, of: type)
            return nil
        }
        var row = current
        if row.state.ownChange == .nothing { row.beginEdit(order: try rows.nextChangeOrder()) }
        switch row.state.delete() {
        case .pending:
            try rows.write(&row, of: type, replacing: current)
            return row
        case .rowRemoved, .refused:
            try rows.remove(current, of: type)
            return nil
        }
    }

    private func saveChildren(of entity: inout Entity) throws(EntityError) {
        for relationship in entity.type.relationships {
            guard let children = entity.children[relationship.name] else { continue }
            var saved: [Entity] = []
            for var child in children {
                try child.set(relationship.foreignKey, to: entity.key)
                try save(&child)
                saved.append(child)
            }
            entity.replaceChildren(of: relationship.name, with: saved)
        }
        if !entity.children.isEmpty {
            let key = try entity.type.keyText(of: entity.key)
            if let row = try step("saving children", { try rows.stored(entity.type.name, key) }) { entity.load(row) }
        }
    }
}
