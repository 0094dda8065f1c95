/// Rows of Swift types.
extension EntityStore {
    /// Stores a new record; it is pending until the server has accepted it.
    ///
    /// - Throws: as the call for `Entity` with the same name; this also applies to the calls below.
    public func create<Record: EntityRecord>(_ record: Record) throws(EntityError) -> EntityRow<Record> {
        var row = EntityRow(record)
        try create(&row)
        return row
    }

    /// Stores a new row and its children.
    public func create<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try create(&entity) }
    }

    /// Stores the changes that were made in memory, and the children.
    public func update<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try update(&entity) }
    }

    /// Deletes a row and its children.
    public func delete<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try delete(&entity) }
    }

    /// Creates a new row or updates a changed one, and does the same with its children.
    public func save<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try save(&entity) }
    }

    /// Saves a row with its children, and submits it, in one transaction.
    public func saveAndSubmit<Record>(_ row: inout EntityRow<Record>) async throws(EntityError) {
        try await row.submitting(try row.taken()) { entity async throws(EntityError) in
            try await saveAndSubmit(&entity)
        }
    }

    /// Submits a row's pending change with those of its parents and children.
    public func submitPending<Record>(_ row: inout EntityRow<Record>) async throws(EntityError) {
        try await row.submitting(row.entity) { entity async throws(EntityError) in
            try await submitPending(&entity)
        }
    }

    /// Ends the conflict of a row by a decision of the user, and submits the rest of the edit.
    public func resolve<Record>(
        _ row: inout EntityRow<Record>, _ conflict: EntityConflict, _ resolution: EntityConflict.Resolution
    ) async throws(EntityError) {
        try await row.submitting(row.entity) { entity async throws(EntityError) in
            try await resolve(&entity, conflict, resolution)
        }
    }

    /// Cancels the pending changes of a row and its children.
    public func cancelPending<Record>(_ row: inout EntityRow<Record>) async throws(EntityError) {
        try await row.submitting(row.entity) { entity async throws(EntityError) in
            try await cancelPending(&entity)
        }
    }
}
