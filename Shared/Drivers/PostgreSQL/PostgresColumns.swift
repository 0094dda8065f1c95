import CLibPQ

/// Reads the columns of one row in their order.
///
/// A missing column, a column that is left over, a null for a type that has none, and a column of another type are
/// errors that name the column.
@usableFromInline
package struct PostgresColumns {
    private let result: ResultBox
    private let row: Int32
    private let count: Int32
    /// The next column, from 0 on.
    private var place: Int32 = 0

    init(_ result: ResultBox, row: Int32) {
        self.result = result
        self.row = row
        count = PQnfields(result.pointer)
    }

    /// Decodes the next column.
    @inlinable
    package mutating func next<Value: PostgresDecodable>(
        _ type: Value.Type = Value.self
    ) throws(PostgresError) -> Value {
        try Value(next: &self)
    }

    /// Whether the next column is null.
    @usableFromInline
    package var isNextNull: Bool { place < count && PQgetisnull(result.pointer, row, place) != 0 }

    /// Passes over the columns that are left.
    package mutating func skipRest() { place = count }

    /// Passes over the next column.
    @usableFromInline
    mutating func skip() { place = min(place + 1, count) }

    /// The bytes of the next column, in libpq's memory. They are valid as long as the result.
    @usableFromInline
    mutating func next(_ type: ColumnType) throws(PostgresError) -> UnsafeRawBufferPointer {
        guard place < count else { throw missing }
        let column = place
        guard type.includes(PQftype(result.pointer, column)) else { throw unexpected(type) }
        let length = Int(PQgetlength(result.pointer, row, column))
        // A null has the length 0.
        if length == 0, PQgetisnull(result.pointer, row, column) != 0 { throw unexpected(type) }
        place += 1
        return UnsafeRawBufferPointer(start: PQgetvalue(result.pointer, row, column), count: length)
    }

    /// Checks that all columns were decoded.
    @usableFromInline
    func finish() throws(PostgresError) {
        guard place < count else { return }
        throw mismatch("the result has \(count) columns, and \(place) \(place == 1 ? "is" : "are") decoded")
    }

    private var missing: PostgresError { mismatch("the result has \(count) columns, and more are decoded") }

    private func unexpected(_ type: ColumnType) -> PostgresError {
        let name = PQfname(result.pointer, place).map { String(cString: $0) } ?? ""
        let id = PQftype(result.pointer, place)
        let found = isNextNull ? "null" : ColumnType.allCases.first { $0.includes(id) }?.name ?? "of type \(id)"
        return mismatch("column \(place + 1) (\(name)) is \(found), and \(type.name) is expected")
    }

    private func mismatch(_ message: String) -> PostgresError {
        PostgresError(code: .misuse, message: message, mayRetry: false)
    }
}

/// The types of columns that are decoded.
@usableFromInline
enum ColumnType: CaseIterable {
    case bool, bytea, bigint, smallint, integer, text
    /// Any of the three integer types.
    case wholeNumber

    /// The name in SQL.
    var name: String {
        switch self {
        case .bool: "boolean"
        case .bytea: "bytea"
        case .bigint: "bigint"
        case .smallint: "smallint"
        case .integer: "integer"
        case .text: "text"
        case .wholeNumber: "smallint, integer or bigint"
        }
    }

    /// Whether columns of a type are decoded as this one; its object id is from PostgreSQL's catalog (pg_type.dat).
    func includes(_ typeID: UInt32) -> Bool {
        switch self {
        case .bool: typeID == 16
        case .bytea: typeID == 17
        case .bigint: typeID == 20
        case .smallint: typeID == 21
        case .integer: typeID == 23
        // Also name and varchar.
        case .text: typeID == 25 || typeID == 19 || typeID == 1043
        case .wholeNumber: typeID == 20 || typeID == 21 || typeID == 23
        }
    }
}
