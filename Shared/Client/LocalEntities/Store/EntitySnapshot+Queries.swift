import GRDB
import MobileSync

/// Reads and queries.
extension EntitySnapshot {
    /// Makes a row that is not stored yet; all its attributes are null.
    ///
    /// - Throws: `EntityError.noSuchClass`.
    public func makeEntity(_ typeName: String) throws(EntityError) -> Entity { Entity(new: try schema.type(typeName)) }

    /// Replaces the values and state in memory by the stored ones.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func refresh(_ entity: inout Entity) throws(EntityError) {
        let type = entity.type
        let key = try entity.savedKey()
        let row = try step("refreshing") { try rows.stored(type.name, key) }
        guard let row else { throw EntityError(.objectNotFound, "no row of \(type.name) has this key") }
        entity.load(row)
    }

    /// Returns the server's last known version of a pending row; nil when it has none.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func original(of entity: Entity) throws(EntityError) -> Entity? {
        let key = try entity.savedKey()
        let row = try step("reading the original") { try rows.stored(entity.type.name, key) }
        guard var row else { throw EntityError(.objectNotFound, "no row of \(entity.type.name) has this key") }
        guard let fields = row.serverFields else { return nil }
        row.fields = fields
        row.state = .imported(counter: row.serverCounter)
        return Entity(type: entity.type, row: row)
    }

    /// Returns the three versions of a row that has changed on the server since its edit began; nil when it has not.
    ///
    /// - Throws: `EntityError.objectNotFound`.
    public func conflict(of entity: Entity) throws(EntityError) -> EntityConflict? {
        let key = try entity.savedKey()
        let row = try step("reading a conflict") { try rows.stored(entity.type.name, key) }
        guard let row else { throw EntityError(.objectNotFound, "no row of \(entity.type.name) has this key") }
        return row.hasConflict ? EntityConflict(row, entity.type) : nil
    }

    /// Returns the rows of a query.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `noSuchAttribute`, `wrongDataType`, `invalidArgument`, `persistence`.
    public func findWithQuery(_ query: EntityQuery) throws(EntityError) -> [Entity] {
        try step("finding") {
            let compiled = try compiler(query).rows()
            let table = try context.table(query.typeName)
            return try table.rows(
                where: compiled.sql, StatementArguments(compiled.arguments), in: context.db, cipher: context.cipher,
                isKept: false
            ).map { Entity(type: table.type, row: $0) }
        }
    }

    /// Returns the number of rows that `findWithQuery` would return.
    ///
    /// - Throws: as `findWithQuery`.
    public func countWithQuery(_ query: EntityQuery) throws(EntityError) -> Int {
        try step("counting") {
            let compiled = try compiler(query).rows()
            let table = try context.table(query.typeName).name
            return try Int.fetchOne(
                context.db, sql: "SELECT count(*) FROM (SELECT 1 FROM \(table) WHERE \(compiled.sql))",
                arguments: StatementArguments(compiled.arguments)) ?? 0
        }
    }

    /// Returns the columns of a query.
    ///
    /// - Throws: as `findWithQuery`.
    public func executeQuery(_ query: EntityQuery) throws(EntityError) -> QueryResult {
        try step("querying") {
            let (compiled, types) = try compiler(query).columns()
            let rows = try Row.fetchAll(
                context.db, sql: compiled.sql, arguments: StatementArguments(compiled.arguments))
            return QueryResult(
                columns: query.columns.map(\.name),
                rows: try rows.map { row in
                    try types.enumerated().map { try FieldColumn.attribute(row[$0.offset], $0.element) }
                })
        }
    }

    /// Returns the row with a key; nil when there is none or it is deleted.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `wrongDataType`, `persistence`.
    public func findByPrimaryKey(_ typeName: String, _ key: AttributeValue) throws(EntityError) -> Entity? {
        let type = try schema.type(typeName)
        let text = try type.keyText(of: key)
        return try step("finding by key") {
            guard let row = try rows.stored(typeName, text), !row.state.isRemoved else { return nil }
            return Entity(type: type, row: row)
        }
    }

    /// Returns all rows of a type in the order of their insertion.
    ///
    /// - Throws: as `findWithQuery`.
    public func findAll(_ typeName: String, skip: Int = 0, take: Int? = nil) throws(EntityError) -> [Entity] {
        try findWithQuery(EntityQuery(typeName).page(skip: skip, take: take))
    }

    /// Returns a row's children, except deleted ones.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `persistence`.
    public func children(of entity: Entity, _ relationship: String) throws(EntityError) -> [Entity] {
        let declared = try schema.type(entity.type.name).relationship(relationship)
        return try findWithQuery(
            EntityQuery(declared.childType).where(.test(declared.foreignKey, .equal, entity.key)))
    }

    /// Returns a row's parent; nil when the row names none, or the parent is not stored or deleted.
    ///
    /// - Parameter relationship: the inverse name of the relationship.
    /// - Throws: `EntityError`: `noSuchAttribute`, `persistence`.
    public func parent(of entity: Entity, _ relationship: String) throws(EntityError) -> Entity? {
        let link = schema.parents(of: entity.type.name).first { $0.relationship.inverseName == relationship }
        guard let link else {
            throw EntityError(.noSuchAttribute, "\(entity.type.name) has no relationship \(relationship)")
        }
        let key = try entity.value(link.relationship.foreignKey)
        return key == .null ? nil : try findByPrimaryKey(link.parentType, key)
    }

    private func compiler(_ query: EntityQuery) throws(EntityError) -> QueryCompiler {
        try QueryCompiler(query, schema: schema, tables: context.tables, isSealed: context.cipher != nil)
    }
}
