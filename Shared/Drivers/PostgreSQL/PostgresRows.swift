import CLibPQ

/// The rows of one result, in libpq's memory. Each row is decoded by type, in the order of its columns.
@usableFromInline
package struct PostgresRows: Sendable {
    private let result: ResultBox

    init(_ result: OpaquePointer) { self.result = ResultBox(result) }

    @usableFromInline
    package var count: Int { Int(PQntuples(result.pointer)) }
    @inlinable
    package var isEmpty: Bool { count == 0 }

    /// Decodes every row.
    ///
    /// - Parameter row: decodes all columns of one row, as in the functions below.
    @inlinable
    package func decode<Output>(
        _ row: (inout PostgresColumns) throws(PostgresError) -> Output
    ) throws(PostgresError) -> [Output] {
        var outputs: [Output] = []
        outputs.reserveCapacity(count)
        for index in 0..<count {
            var columns = columns(of: index)
            outputs.append(try row(&columns))
            try columns.finish()
        }
        return outputs
    }

    /// Decodes every row into a state of the caller.
    @inlinable
    package func forEachRow(
        _ row: (inout PostgresColumns) throws(PostgresError) -> Void
    ) throws(PostgresError) {
        for index in 0..<count {
            var columns = columns(of: index)
            try row(&columns)
            try columns.finish()
        }
    }

    /// Decodes every row, and leaves out those for which `row` returns nil, which need not decode all columns.
    @inlinable
    package func compactDecode<Output>(
        _ row: (inout PostgresColumns) throws(PostgresError) -> Output?
    ) throws(PostgresError) -> [Output] {
        var outputs: [Output] = []
        for index in 0..<count {
            var columns = columns(of: index)
            guard let output = try row(&columns) else { continue }
            try columns.finish()
            outputs.append(output)
        }
        return outputs
    }

    /// Decodes the first row; nil: there is no row.
    @inlinable
    package func first<Output>(
        _ row: (inout PostgresColumns) throws(PostgresError) -> Output
    ) throws(PostgresError) -> Output? {
        guard !isEmpty else { return nil }
        var columns = columns(of: 0)
        let output = try row(&columns)
        try columns.finish()
        return output
    }

    /// Decodes rows of one column.
    @inlinable
    package func decode<Value: PostgresDecodable>(_ type: Value.Type) throws(PostgresError) -> [Value] {
        try decode { columns throws(PostgresError) in try columns.next(type) }
    }

    /// Decodes the first row, of one column; nil: there is no row.
    @inlinable
    package func first<Value: PostgresDecodable>(_ type: Value.Type) throws(PostgresError) -> Value? {
        try first { columns throws(PostgresError) in try columns.next(type) }
    }

    @usableFromInline
    func columns(of index: Int) -> PostgresColumns { PostgresColumns(result, row: Int32(index)) }
}

/// Frees libpq's memory with the last reader.
// Unchecked: a PGresult is immutable after its creation, and libpq allows reads from any thread (libpq: Threading).
final class ResultBox: @unchecked Sendable {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { PQclear(pointer) }
}
