import GRDB
import MobileSync

/// Compiles a query to SQL. The SQL contains only names of the declaration, never text of the query; values are
/// arguments.
struct QueryCompiler {
    /// The largest number of arguments in one statement; below SQLite's limit.
    static let mostArguments = 30_000
    /// The largest number of tests in one query. SQLite compares the constants of a statement in pairs, except those of
    /// a list: 30,000 tests would take 20 s, 2,000 take 0.1 to 0.2 s.
    static let mostTests = 2_000
    /// The deepest nesting of conditions. Multiplied by `longestChain` it is below SQLite's limit of 1,000.
    static let deepest = 20
    /// The longest chain of conditions without parentheses.
    private static let longestChain = 30
    /// The longest pattern in characters, because matching a long one can be slow.
    static let longestPattern = 1_000

    /// A table of the query.
    private struct Source {
        let table: EntityTable
        /// The table's name in the SQL.
        let name: String
    }

    /// An attribute, or a part of a row's state, as SQL.
    struct Expression {
        let sql: String
        let type: AttributeType

        /// The SQL to compare or sort by: decimals are stored as text, and have an order of their own.
        var ordered: String { type == .decimal ? "(\(sql) COLLATE \(DecimalOrder.name))" : sql }
    }

    let query: EntityQuery
    private let root: EntityTable
    /// Whether attributes are encrypted in the file.
    private let isSealed: Bool
    private var sources: [String: Source] = [:]
    private var joins = ""
    /// The conditions that exclude deleted rows.
    private var visible: [String]

    /// Looks up the types of the query.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, `noSuchAttribute` for a relationship, `invalidArgument`.
    init(
        _ query: EntityQuery, schema: EntitySchema, tables: [String: EntityTable], isSealed: Bool
    ) throws(EntityError) {
        self.query = query
        self.isSealed = isSealed
        guard let root = tables[query.typeName] else {
            throw EntityError(.noSuchClass, "no entity type \(query.typeName) is declared")
        }
        guard (0...EntityLimits.rows).contains(query.skip), (0...EntityLimits.rows).contains(query.take ?? 0) else {
            throw EntityError(.invalidArgument, "skip and take must be 0 to \(EntityLimits.rows)")
        }
        self.root = root
        visible = query.includesDeleted ? [] : ["(t0.flags & 16) = 0"]
        for join in query.joins { try add(join, schema, tables) }
    }

    private mutating func add(
        _ join: EntityQuery.Join, _ schema: EntitySchema, _ tables: [String: EntityTable]
    ) throws(EntityError) {
        let base: Source
        if let alias = join.base {
            guard let found = sources[alias] else {
                throw EntityError(.noSuchAttribute, "a join starts at the alias \(alias), which no earlier join has")
            }
            base = found
        } else {
            base = Source(table: root, name: "t0")
        }
        guard sources[join.alias] == nil else {
            throw EntityError(.invalidArgument, "two joins have the alias \(join.alias)")
        }
        let name = "t\(sources.count + 1)"
        let target: EntityTable
        let on: String
        let type = base.table.type
        if let relationship = type.relationships.first(where: { $0.name == join.relationship }),
            let table = tables[relationship.childType]
        {
            target = table
            let foreignKey = EntityTable.column(relationship.foreignKey)
            on = "\(name).\(foreignKey) = \(base.name).\(EntityTable.column(type.keyAttribute))"
        } else if let link = schema.parents(of: type.name).first(where: {
            $0.relationship.inverseName == join.relationship
        }), let table = tables[link.parentType] {
            target = table
            let foreignKey = EntityTable.column(link.relationship.foreignKey)
            on = "\(name).\(EntityTable.column(table.type.keyAttribute)) = \(base.name).\(foreignKey)"
        } else {
            throw EntityError(.noSuchAttribute, "\(type.name) has no relationship \(join.relationship)")
        }
        sources[join.alias] = Source(table: target, name: name)
        joins += " JOIN \(target.name) AS \(name) ON \(on)"
        visible.append("(\(name).flags & 16) = 0")
    }

    // MARK: Statements

    /// The SQL after WHERE for whole rows, each once.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`, `invalidArgument`.
    func rows() throws(EntityError) -> CompiledQuery {
        guard query.groups.isEmpty, query.columns.isEmpty, !query.isDistinct else {
            throw EntityError(.invalidArgument, "columns, groups and distinct work only with executeQuery")
        }
        var compiled = try source("SELECT t0.id")
        compiled.sql = "id IN (\(compiled.sql)) ORDER BY "
        for sort in query.sorts {
            guard !sort.attribute.contains(".") else {
                throw EntityError(.invalidArgument, "rows can only be sorted by their own attributes")
            }
            let sorted = try expression(sort.attribute, root: root.name)
            compiled.sql += "\(sorted.ordered)\(sort.isDescending ? " DESC" : ""), "
        }
        compiled.sql += "id" + limit
        return try checked(compiled)
    }

    /// The complete statement for the query's columns, and the types of the columns.
    ///
    /// - Throws: as `rows`.
    func columns() throws(EntityError) -> (query: CompiledQuery, types: [AttributeType]) {
        guard !query.columns.isEmpty else {
            throw EntityError(.invalidArgument, "executeQuery needs columns")
        }
        let isGrouped = !query.groups.isEmpty || query.columns.contains { $0.isAggregate }
        if isGrouped { try checkGroups() }
        var expressions: [Expression] = []
        for column in query.columns { expressions.append(try expression(of: column)) }
        let select = query.isDistinct ? "SELECT DISTINCT " : "SELECT "
        var compiled = try source(select + expressions.map(\.sql).joined(separator: ", "))
        var groups: [String] = []
        for group in query.groups { groups.append(try expression(group).sql) }
        if !groups.isEmpty { compiled.sql += " GROUP BY " + groups.joined(separator: ", ") }
        var order: [String] = []
        for sort in query.sorts {
            let column = query.columns.first { $0.name == sort.attribute }
            let sorted = try expression(of: column ?? .attribute(sort.attribute))
            order.append(sorted.ordered + (sort.isDescending ? " DESC" : ""))
        }
        if !isGrouped, !query.isDistinct { order.append("t0.id") }
        if !order.isEmpty { compiled.sql += " ORDER BY " + order.joined(separator: ", ") }
        compiled.sql += limit
        return (try checked(compiled), expressions.map(\.type))
    }

    /// A column that is neither a group nor an aggregate would have the value of an arbitrary row.
    private func checkGroups() throws(EntityError) {
        let plain = query.columns.filter { !$0.isAggregate }.map(\.name)
        let sorted = query.sorts.map(\.attribute).filter { name in !query.columns.contains { $0.name == name } }
        for name in plain + sorted where !query.groups.contains(name) {
            throw EntityError(.invalidArgument, "\(name) is selected or sorted by, but is not in group by")
        }
    }

    private func source(_ select: String) throws(EntityError) -> CompiledQuery {
        let condition = try query.condition.map { condition throws(EntityError) in try compile(condition, depth: 0) }
        // The count is recursive, so it comes after `compile`, which refuses deep nesting.
        guard query.condition?.testCount ?? 0 <= Self.mostTests else {
            throw EntityError(
                .invalidArgument,
                "a query can have at most \(Self.mostTests) tests; isIn compares with many values in one test")
        }
        let words = visible + [condition?.sql].compactMap { $0 }
        let filter = words.isEmpty ? "" : " WHERE " + words.joined(separator: " AND ")
        return CompiledQuery("\(select) FROM \(root.name) AS t0\(joins)\(filter)", condition?.arguments ?? [])
    }

    private var limit: String {
        query.skip == 0 && query.take == nil ? "" : " LIMIT \(query.take ?? -1) OFFSET \(query.skip)"
    }

    private func checked(_ compiled: CompiledQuery) throws(EntityError) -> CompiledQuery {
        guard compiled.arguments.count <= Self.mostArguments else {
            throw EntityError(.invalidArgument, "a query can have at most \(Self.mostArguments) values")
        }
        return compiled
    }

    // MARK: Conditions

    private func compile(_ condition: EntityCondition, depth: Int) throws(EntityError) -> CompiledQuery {
        guard depth <= Self.deepest else {
            throw EntityError(.invalidArgument, "conditions can be nested at most \(Self.deepest) deep")
        }
        switch condition {
        case .test(let test): return try TestCompiler(compiler: self, test: test).compiled()
        case .and(let parts): return try compile(parts, "AND", none: "1", depth: depth)
        case .or(let parts): return try compile(parts, "OR", none: "0", depth: depth)
        case .not(let part):
            let inner = try compile(part, depth: depth + 1)
            return CompiledQuery("(NOT \(inner.sql))", inner.arguments)
        }
    }

    private func compile(
        _ parts: [EntityCondition], _ word: String, none: String, depth: Int
    ) throws(EntityError) -> CompiledQuery {
        guard !parts.isEmpty else { return CompiledQuery(none) }
        var compiled: [CompiledQuery] = []
        for part in parts { compiled.append(try compile(part, depth: depth + 1)) }
        // SQLite nests a chain as deep as it is long.
        while compiled.count > Self.longestChain {
            compiled = stride(from: 0, to: compiled.count, by: Self.longestChain).map { start in
                Self.chain(Array(compiled[start..<min(start + Self.longestChain, compiled.count)]), word)
            }
        }
        return Self.chain(compiled, word)
    }

    private static func chain(_ parts: [CompiledQuery], _ word: String) -> CompiledQuery {
        let joined = CompiledQuery.joined(parts, by: " \(word) ")
        return CompiledQuery("(\(joined.sql))", joined.arguments)
    }

    // MARK: Names

    /// The SQL of an attribute that the query names.
    ///
    /// - Parameter own: the SQL name of the query's own table.
    /// - Throws: `EntityError.noSuchAttribute`.
    func expression(_ name: String, root own: String = "t0") throws(EntityError) -> Expression {
        let parts = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else { return try expression(name, in: Source(table: root, name: own)) }
        guard let source = sources[parts[0]] else {
            throw EntityError(.noSuchAttribute, "no join has the alias \(parts[0])")
        }
        return try expression(parts[1], in: source)
    }

    private func expression(_ name: String, in source: Source) throws(EntityError) -> Expression {
        let row = source.name
        switch name {
        case "pending": return Expression(sql: "(\(row).pending_change <> 'N')", type: .boolean)
        case "pendingChange": return Expression(sql: "\(row).pending_change", type: .text)
        case "isCreated": return Expression(sql: "(\(row).pending_change = 'C')", type: .boolean)
        case "isUpdated": return Expression(sql: "(\(row).pending_change = 'U')", type: .boolean)
        case "isDeleted": return Expression(sql: "(\(row).pending_change = 'D')", type: .boolean)
        case "replayCounter": return Expression(sql: "\(row).replay_counter", type: .integer)
        case "replayPending": return Expression(sql: "\(row).replay_pending", type: .integer)
        case "replayFailure": return Expression(sql: "\(row).replay_failure", type: .integer)
        case "hasLogRecords":
            // The name of a type has no quotes.
            let component = source.table.type.name
            return Expression(
                sql: """
                    EXISTS (SELECT 1 FROM log_record WHERE component = '\(component)' \
                    AND log_record.entity_key = \(row).entity_key)
                    """, type: .boolean)
        default: break
        }
        let type = source.table.type
        let attribute = try type.attribute(name)
        let column = "\(row).\(EntityTable.column(attribute.name))"
        guard isSealed, source.table.sealed.contains(attribute.name) else {
            return Expression(sql: column, type: attribute.type)
        }
        let place = FieldColumn.place(type.name, attribute.name, "")
        return Expression(sql: "entity_open(\(column), '\(place)' || \(row).entity_key)", type: attribute.type)
    }

    private func expression(of column: EntityQuery.Column) throws(EntityError) -> Expression {
        switch column {
        case .attribute(let name): return try expression(name)
        case .count: return Expression(sql: "count(*)", type: .integer)
        case .sum(let name):
            return try expression(name).type == .decimal
                ? aggregate(DecimalOrder.sumName, name, [.decimal]) : aggregate("sum", name, [.integer, .double])
        case .average(let name):
            return Expression(sql: try aggregate("avg", name, [.integer, .double]).sql, type: .double)
        case .minimum(let name): return try aggregate("min", name, [.integer, .double, .decimal, .date, .text])
        case .maximum(let name): return try aggregate("max", name, [.integer, .double, .decimal, .date, .text])
        }
    }

    private func aggregate(
        _ function: String, _ name: String, _ types: Set<AttributeType>
    ) throws(EntityError) -> Expression {
        let value = try expression(name)
        guard types.contains(value.type) else {
            throw EntityError(.wrongDataType, "\(function) cannot be applied to \(name) of type \(value.type.rawValue)")
        }
        return Expression(sql: "\(function)(\(value.ordered))", type: value.type)
    }

    /// The SQL function that decrypts a column, so that encrypted columns can be queried. They have no index.
    static func openFunction(_ cipher: @escaping @Sendable () -> StoreCipher?) -> DatabaseFunction {
        DatabaseFunction("entity_open", argumentCount: 2, pure: true) { values in
            guard let cipher = cipher(), let place = String.fromDatabaseValue(values[1]) else { return values[0] }
            return try FieldColumn.opened(values[0], with: cipher, place: place)
        }
    }
}

extension EntityQuery.Column {
    /// Whether the column aggregates several rows.
    fileprivate var isAggregate: Bool {
        if case .attribute = self { false } else { true }
    }
}
