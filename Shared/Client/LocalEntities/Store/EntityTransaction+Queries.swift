import GRDB
import MobileSync

/// Queries.
extension EntityTransaction {
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

    private func compiler(_ query: EntityQuery) throws(EntityError) -> QueryCompiler {
        try QueryCompiler(query, schema: schema, tables: context.tables, isSealed: context.cipher != nil)
    }
}
