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

    /// Replaces the values and state in memory by the stored ones.
    public func refresh<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try refresh(&entity) }
    }

    /// Returns the server's version of a pending row; nil when it has none.
    public func original<Record>(of row: EntityRow<Record>) throws(EntityError) -> EntityRow<Record>? {
        try original(of: row.entity).map { entity throws(EntityError) in try EntityRow(entity) }
    }

    /// Submits a row's pending change with those of its parents and children.
    public func submitPending<Record>(_ row: inout EntityRow<Record>) async throws(EntityError) {
        var entity = row.entity
        do {
            try await submitPending(&entity)
        } catch {
            // The row is marked as submitted in spite of the error, and must show that.
            try refresh(&row)
            throw error
        }
        try refresh(&row)
    }

    /// Cancels the pending changes of a row and its children.
    public func cancelPending<Record>(_ row: inout EntityRow<Record>) async throws(EntityError) {
        var entity = row.entity
        try await cancelPending(&entity)
        row.entity = entity
        if !entity.isNew { try refresh(&row) }
    }

    /// Returns the rows of a query of the record's type.
    public func findWithQuery<Record: EntityRecord>(
        _: Record.Type, _ query: EntityQuery
    ) throws(EntityError) -> [EntityRow<Record>] {
        guard query.typeName == Record.entityType.name else {
            throw EntityError(.wrongDataType, "the query is for \(query.typeName), not for \(Record.entityType.name)")
        }
        return try rows(of: findWithQuery(query))
    }

    /// Returns the rows that fulfil a condition.
    public func find<Record: EntityRecord>(
        _: Record.Type, _ condition: EntityCondition
    ) throws(EntityError) -> [EntityRow<Record>] {
        try rows(of: find(Record.entityType.name, condition))
    }

    /// Returns all rows of a type in the order of their insertion.
    public func findAll<Record: EntityRecord>(
        _: Record.Type, skip: Int = 0, take: Int? = nil
    ) throws(EntityError) -> [EntityRow<Record>] {
        try rows(of: findAll(Record.entityType.name, skip: skip, take: take))
    }

    /// Returns the row with a key; nil when there is none or it is deleted.
    public func findByPrimaryKey<Record: EntityRecord>(
        _: Record.Type, _ key: AttributeValue
    ) throws(EntityError) -> EntityRow<Record>? {
        try findByPrimaryKey(Record.entityType.name, key).map { entity throws(EntityError) in try EntityRow(entity) }
    }

    /// Returns a row's children, except deleted ones.
    public func children<Record, Child: EntityRecord>(
        of row: EntityRow<Record>, _ relationship: String, as _: Child.Type
    ) throws(EntityError) -> [EntityRow<Child>] {
        try rows(of: children(of: row.entity, relationship))
    }

    private func rows<Record>(of entities: [Entity]) throws(EntityError) -> [EntityRow<Record>] {
        var rows: [EntityRow<Record>] = []
        for entity in entities { rows.append(try EntityRow(entity)) }
        return rows
    }
}
