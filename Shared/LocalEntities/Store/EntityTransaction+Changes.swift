extension EntityTransaction {
    /// A row that is not in the store yet, with null for every attribute.
    ///
    /// - Throws: `EntityError.noSuchClass`.
    public func makeEntity(_ typeName: String) throws(EntityError) -> Entity { Entity(new: try schema.type(typeName)) }

    /// Puts a new row, and its children, into the store; it is pending until the server has accepted it.
    ///
    /// - Throws: `EntityError`: `wrongDataType`, `persistence` when there is one of its key.
    public func create(_ entity: inout Entity) throws(EntityError) {
        var created = entity
        try step("creating") {
            let type = created.type
            let fields = try declared(type).checked(created.fields)
            let key = try type.keyText(of: fields[type.keyAttribute])
            let old = try stored(type.name, key)
            var row = old ?? StoredRow(key: key, fields: fields, state: .localOnly)
            if old != nil {
                guard row.state.recreate() else {
                    throw EntityError(.persistence, "there is a \(type.name) of this key")
                }
            } else if !type.isLocalOnly {
                row.state = .created()
                row.changeOrder = try nextChangeOrder()
            }
            row.fields = fields
            try write(&row, of: type, replacing: old)
            created.take(row)
            try saveChildren(of: &created)
        }
        entity = created
    }

    /// Writes what was changed in memory, and the children; of what was not, the store's values stay.
    ///
    /// - Throws: `EntityError`: `objectNotFound`, `wrongDataType`, `persistence` for a changed key.
    public func update(_ entity: inout Entity) throws(EntityError) {
        var updated = entity
        try step("updating") {
            let type = try declared(updated.type)
            let changes = updated.changedFields
            let key = try updated.savedKey()
            let old = try visibleRow(type, key)
            var row = old
            row.fields = try type.checked(old.fields.merging(changes) { $1 })
            guard row.fields[type.keyAttribute] == old.fields[type.keyAttribute] else {
                throw EntityError(.persistence, "the key of a \(type.name) cannot be changed")
            }
            if row.fields != old.fields {
                if !type.isLocalOnly { try beginEdit(&row, from: old) }
                try write(&row, of: type, replacing: old)
            }
            updated.take(row)
            try saveChildren(of: &updated)
        }
        entity = updated
    }

    /// Deletes a row and its children; they are pending until the server has accepted it, but for those that it has
    /// never heard of.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func delete(_ entity: inout Entity) throws(EntityError) {
        var deleted = entity
        try step("deleting") {
            let type = try declared(deleted.type)
            let key = try deleted.savedKey()
            if let row = try delete(try visibleRow(type, key), of: type) {
                deleted.take(row)
            } else {
                deleted.becomeGone(.localOnly)
            }
        }
        entity = deleted
    }

    /// Creates a new row, updates one that was changed in memory, and does the same with its children.
    ///
    /// - Throws: As `create` and `update`.
    public func save(_ entity: inout Entity) throws(EntityError) {
        if entity.isNew { try create(&entity) } else { try update(&entity) }
    }

    /// Takes the store's values and state in place of what is in memory.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func refresh(_ entity: inout Entity) throws(EntityError) {
        let type = entity.type
        let key = try entity.savedKey()
        let row = try step("refreshing") { try stored(type.name, key) }
        guard let row else { throw EntityError(.objectNotFound, "there is no \(type.name) of this key") }
        entity.take(row)
    }

    /// The server's version of a pending row, as far as it is known; nil: it has none.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func original(of entity: Entity) throws(EntityError) -> Entity? {
        let key = try entity.savedKey()
        let row = try step("reading the original") { try stored(entity.type.name, key) }
        guard var row else { throw EntityError(.objectNotFound, "there is no \(entity.type.name) of this key") }
        guard let fields = row.serverFields else { return nil }
        row.fields = fields
        row.state = .imported(counter: row.serverCounter)
        return Entity(type: entity.type, row: row)
    }

    // MARK: Parts

    /// The type as this store declares it, whatever the value was made with.
    private func declared(_ type: EntityType) throws(EntityError) -> EntityType { try schema.type(type.name) }

    /// Notes that a row is changed by the app.
    private func beginEdit(_ row: inout StoredRow, from old: StoredRow) throws {
        var before = old
        if old.state.ownChange == .nothing {
            before.beginEdit(order: try nextChangeOrder())
        } else if old.state.replayFailure == old.state.replayCounter, old.state.replayFailure > 0 {
            // The app has seen why the server refused, and with what it has there; it now means that version.
            before.baseCounter = old.serverCounter
        }
        (row.original, row.baseCounter, row.changeOrder) = (before.original, before.baseCounter, before.changeOrder)
        guard row.state.update() else {
            throw EntityError(.objectNotFound, "the row is deleted")
        }
    }

    /// Deletes a row that is there, children first.
    ///
    /// - Returns: the row as it is pending; nil: it is gone.
    private func delete(_ old: StoredRow, of type: EntityType) throws -> StoredRow? {
        for relationship in type.relationships {
            let childType = try schema.type(relationship.childType)
            for child in try childRows(relationship, of: old, type) where !child.state.isRemoved {
                _ = try delete(child, of: childType)
            }
        }
        // Its children have changed what it says of them.
        let current = try stored(type.name, old.key) ?? old
        guard !type.isLocalOnly else {
            try remove(current, of: type)
            return nil
        }
        var row = current
        if row.state.ownChange == .nothing { row.beginEdit(order: try nextChangeOrder()) }
        switch row.state.delete() {
        case .pending:
            try write(&row, of: type, replacing: current)
            return row
        case .rowRemoved, .refused:
            try remove(current, of: type)
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
            if let row = try step("saving children", { try stored(entity.type.name, key) }) { entity.take(row) }
        }
    }
}
