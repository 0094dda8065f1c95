package import PostgreSQL
package import SyncModel

// The service's own types as columns: identifiers are texts, ids of oplogs and times are bigints.

extension TextIdentifier {
    package init(next columns: inout PostgresColumns) throws(PostgresError) { self.init(try columns.next()) }
}

extension InstanceID: PostgresDecodable {}
extension BizType: PostgresDecodable {}
extension UserID: PostgresDecodable {}
extension DeviceID: PostgresDecodable {}
extension ThirdMessageID: PostgresDecodable {}

extension OplogID: PostgresDecodable {
    package init(next columns: inout PostgresColumns) throws(PostgresError) { self.init(try columns.next()) }
}

/// In whole milliseconds since 1970, as in `DatabaseTime.column`.
extension WallTime: PostgresDecodable {
    package init(next columns: inout PostgresColumns) throws(PostgresError) {
        self.init(milliseconds: try columns.next())
    }
}

extension PostgresColumns {
    /// The next column, where an empty value means that there is none.
    mutating func nextNonEmpty<Value: PostgresDecodable & Collection>(
        _ type: Value.Type = Value.self
    ) throws(PostgresError) -> Value? {
        let value = try next(type)
        return value.isEmpty ? nil : value
    }
}
