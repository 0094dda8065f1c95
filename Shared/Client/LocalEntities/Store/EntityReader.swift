/// Reads of rows: of an `EntityStore`, and inside a read or a transaction (`EntitySnapshot`).
public protocol EntityReader {
    /// Reads several things from one moment. The caller's thread waits. The body must use only the snapshot's calls,
    /// and must not keep the snapshot.
    ///
    /// - Throws: the errors of the body, if they are `EntityError`; `EntityError.persistence`.
    func snapshot<Value>(_ body: (EntitySnapshot) throws -> Value) throws(EntityError) -> Value
}

/// Rows with attributes by name.
extension EntityReader {
    /// Replaces the values and state in memory by the stored ones.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func refresh(_ entity: inout Entity) throws(EntityError) {
        let before = entity
        entity = try snapshot { snapshot in
            var entity = before
            try snapshot.refresh(&entity)
            return entity
        }
    }

    /// Returns the server's last known version of a pending row; nil when it has none.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func original(of entity: Entity) throws(EntityError) -> Entity? {
        try snapshot { try $0.original(of: entity) }
    }

    /// Returns the three versions of a row that has changed on the server since its edit began; nil when it has not.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func conflict(of entity: Entity) throws(EntityError) -> EntityConflict? {
        try snapshot { try $0.conflict(of: entity) }
    }

    /// Returns the rows of a query.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `noSuchAttribute`, `wrongDataType`, `invalidArgument`, `persistence`.
    public func findWithQuery(_ query: EntityQuery) throws(EntityError) -> [Entity] {
        try snapshot { try $0.findWithQuery(query) }
    }

    /// Returns the rows of a type that fulfil a condition.
    ///
    /// - Throws: as `findWithQuery`.
    public func find(_ typeName: String, _ condition: EntityCondition) throws(EntityError) -> [Entity] {
        try findWithQuery(EntityQuery(typeName).where(condition))
    }

    /// Returns the number of rows that `findWithQuery` would return.
    ///
    /// - Throws: as `findWithQuery`.
    public func countWithQuery(_ query: EntityQuery) throws(EntityError) -> Int {
        try snapshot { try $0.countWithQuery(query) }
    }

    /// Returns the columns of a query.
    ///
    /// - Throws: as `findWithQuery`.
    public func executeQuery(_ query: EntityQuery) throws(EntityError) -> QueryResult {
        try snapshot { try $0.executeQuery(query) }
    }

    /// Returns the row with a key; nil when there is none or it is deleted.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `wrongDataType`, `persistence`.
    public func findByPrimaryKey(_ typeName: String, _ key: AttributeValue) throws(EntityError) -> Entity? {
        try snapshot { try $0.findByPrimaryKey(typeName, key) }
    }

    /// Returns all rows of a type in the order of their insertion.
    ///
    /// - Throws: as `findWithQuery`.
    public func findAll(_ typeName: String, skip: Int = 0, take: Int? = nil) throws(EntityError) -> [Entity] {
        try snapshot { try $0.findAll(typeName, skip: skip, take: take) }
    }

    /// Returns a row's children, except deleted ones.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `persistence`.
    public func children(of entity: Entity, _ relationship: String) throws(EntityError) -> [Entity] {
        try snapshot { try $0.children(of: entity, relationship) }
    }

    /// Returns a row's parent; nil when the row names none, or the parent is not stored or deleted.
    ///
    /// - Parameter relationship: the inverse name of the relationship.
    /// - Throws: `EntityError`: `noSuchAttribute`, `persistence`.
    public func parent(of entity: Entity, _ relationship: String) throws(EntityError) -> Entity? {
        try snapshot { try $0.parent(of: entity, relationship) }
    }
}

/// Rows of Swift types. They throw as the calls for `Entity` with the same names.
extension EntityReader {
    /// Replaces the values and state in memory by the stored ones.
    public func refresh<Record>(_ row: inout EntityRow<Record>) throws(EntityError) {
        try row.asEntity { entity throws(EntityError) in try refresh(&entity) }
    }

    /// Returns the server's version of a pending row; nil when it has none.
    public func original<Record>(of row: EntityRow<Record>) throws(EntityError) -> EntityRow<Record>? {
        try original(of: row.entity).map { entity throws(EntityError) in try EntityRow(entity) }
    }

    /// Returns the three versions of a row with a conflict; nil when the row has none.
    public func conflict<Record>(of row: EntityRow<Record>) throws(EntityError) -> EntityConflict? {
        try conflict(of: row.entity)
    }

    /// Returns the rows of a query.
    public func findWithQuery<Record>(_ query: RecordQuery<Record>) throws(EntityError) -> [EntityRow<Record>] {
        try rows(of: findWithQuery(query.query))
    }

    /// Returns the number of rows that `findWithQuery` would return.
    public func countWithQuery<Record>(_ query: RecordQuery<Record>) throws(EntityError) -> Int {
        try countWithQuery(query.query)
    }

    /// Returns the rows that fulfil a condition.
    public func find<Record>(
        _: Record.Type, _ condition: RecordCondition<Record>
    ) throws(EntityError) -> [EntityRow<Record>] {
        try findWithQuery(RecordQuery(Record.self).where(condition))
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

    /// Returns a row's parent; nil when the row names none, or the parent is not stored or deleted.
    public func parent<Record, Parent: EntityRecord>(
        of row: EntityRow<Record>, _ relationship: String, as _: Parent.Type
    ) throws(EntityError) -> EntityRow<Parent>? {
        try parent(of: row.entity, relationship).map { entity throws(EntityError) in try EntityRow(entity) }
    }

    private func rows<Record>(of entities: [Entity]) throws(EntityError) -> [EntityRow<Record>] {
        var rows: [EntityRow<Record>] = []
        for entity in entities { rows.append(try EntityRow(entity)) }
        return rows
    }
}
