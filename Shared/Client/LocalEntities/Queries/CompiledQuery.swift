import GRDB

/// A piece of SQL with its arguments.
struct CompiledQuery: Equatable {
    var sql: String
    var arguments: [DatabaseValue]

    init(_ sql: String, _ arguments: [DatabaseValue] = []) {
        self.sql = sql
        self.arguments = arguments
    }

    static func joined(_ parts: [CompiledQuery], by separator: String) -> CompiledQuery {
        CompiledQuery(parts.map(\.sql).joined(separator: separator), parts.flatMap(\.arguments))
    }
}
