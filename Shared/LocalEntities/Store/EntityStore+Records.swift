/// Rows as Swift's own types.
extension EntityStore {
    /// Puts a new record into the store; it is pending until the server has accepted it.
    ///
    /// - Throws: As for rows by names, here and in the calls below.
    public func create<Record: EntityRecord>(_ record: Record) throws(EntityError) -> EntityRow<Record> {
        var row = EntityRow(record)
        try create(&row)
        return row
    }

    /// Puts a new row, and its children, into the store.
    public func create<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try create(&entity) }
    }

    /// Writes what was changed in memory, and the children.
    public func update<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try update(&entity) }
    }

    /// Deletes a row and its children.
    public func delete<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try delete(&entity) }
    }

    /// Creates a new row, or updates one that was changed in memory, and does the same with its children.
    public func save<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try save(&entity) }
    }

    /// Takes the store's values and state in place of what is in memory.
    public func refresh<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try refresh(&entity) }
    }

    /// The server's version of a pending row; nil: it has none.
    public func original<Record>(of row: EntityRow<Record>) throws(EntityError) -> EntityRow<Record>? {
        try original(of: row.entity).map { entity throws(EntityError) in try EntityRow(entity) }
    }

    /// Submits a row's pending change with those of its parents and children.
    public func submitPending<Record>(_ row: inout EntityRow<Record>) async throws(EntityError) {
        var entity = row.entity
        do {
            try await submitPending(&entity)
        } catch {
            // It is marked all the same, and the row is to say so.
            try refresh(&row)
            throw error
        }
        try refresh(&row)
    }

    /// Gives up a row's pending change and those of its children.
    public func cancelPending<Record>(_ row: inout EntityRow<Record>) async throws(EntityError) {
        var entity = row.entity
        try await cancelPending(&entity)
        row.entity = entity
        if !entity.isNew { try refresh(&row) }
    }

    /// Rows of a query, which is of the record's type.
    public func findWithQuery<Record: EntityRecord>(
        _: Record.Type, _ query: EntityQuery
    ) throws(EntityError) -> [EntityRow<Record>] {
        guard query.typeName == Record.entityType.name else {
            throw EntityError(.wrongDataType, "the query is of \(query.typeName), not of \(Record.entityType.name)")
        }
        return try rows(of: findWithQuery(query))
    }

    /// Rows that fulfil a condition.
    public func find<Record: EntityRecord>(
        _: Record.Type, _ condition: EntityCondition
    ) throws(EntityError) -> [EntityRow<Record>] {
        try rows(of: find(Record.entityType.name, condition))
    }

    /// All rows of a type, in the order in which they came into the store.
    public func findAll<Record: EntityRecord>(
        _: Record.Type, skip: Int = 0, take: Int? = nil
    ) throws(EntityError) -> [EntityRow<Record>] {
        try rows(of: findAll(Record.entityType.name, skip: skip, take: take))
    }

    /// The row of a key; nil: there is none, or it is deleted.
    public func findByPrimaryKey<Record: EntityRecord>(
        _: Record.Type, _ key: AttributeValue
    ) throws(EntityError) -> EntityRow<Record>? {
        try findByPrimaryKey(Record.entityType.name, key).map { entity throws(EntityError) in try EntityRow(entity) }
    }

    /// A row's children, but for those that are deleted.
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
