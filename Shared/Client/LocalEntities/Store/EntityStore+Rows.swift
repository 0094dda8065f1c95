/// Rows with attributes by name.
extension EntityStore {
    /// Makes a row that is not stored yet; all its attributes are null.
    ///
    /// - Throws: `EntityError.noSuchClass`.
    public func makeEntity(_ typeName: String) throws(EntityError) -> Entity { Entity(new: try schema.type(typeName)) }

    /// Stores a new row and its children; it is pending until the server has accepted it.
    ///
    /// - Throws: `EntityError`: `wrongDataType`; `persistence` when a row with this key exists.
    public func create(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "creating") { transaction, entity throws(EntityError) in
            try transaction.create(&entity)
        }
    }

    /// Stores the changes that were made in memory, and the children. Unchanged attributes keep their stored values.
    ///
    /// - Throws: `EntityError`: `objectNotFound`, `wrongDataType`, `persistence` for a changed key.
    public func update(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "updating") { transaction, entity throws(EntityError) in
            try transaction.update(&entity)
        }
    }

    /// Deletes a row and its children. They are pending until the server has accepted it; rows that the server has
    /// never received are removed at once.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func delete(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "deleting") { transaction, entity throws(EntityError) in
            try transaction.delete(&entity)
        }
    }

    /// Creates a new row or updates a changed one, and does the same with its children.
    ///
    /// - Throws: as `create` and `update`.
    public func save(_ entity: inout Entity) throws(EntityError) {
        entity = try changed(entity, "saving") { transaction, entity throws(EntityError) in
            try transaction.save(&entity)
        }
    }

    private func changed(
        _ entity: Entity, _ step: String,
        _ body: (EntityTransaction, inout Entity) throws(EntityError) -> Void
    ) throws(EntityError) -> Entity {
        try write(step) { transaction in
            var changed = entity
            try body(transaction, &changed)
            return changed
        }
    }
}
