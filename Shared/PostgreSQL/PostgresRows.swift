import CLibPQ

/// The rows of one result, held in the memory that libpq made for them.
package struct PostgresRows: RandomAccessCollection, Sendable {
    private let result: ResultBox

    init(_ result: OpaquePointer) { self.result = ResultBox(result) }

    package var startIndex: Int { 0 }
    package var endIndex: Int { Int(PQntuples(result.pointer)) }
    package subscript(position: Int) -> PostgresRow { PostgresRow(result: result, index: Int32(position)) }
}

/// One row; columns are read by their place and by the type that the statement gives them. A wrong type is a
/// programmer's error and traps.
package struct PostgresRow: Sendable {
    fileprivate let result: ResultBox
    fileprivate let index: Int32

    package func isNull(_ column: Int) -> Bool { PQgetisnull(result.pointer, index, Int32(column)) != 0 }
    package func bool(_ column: Int) -> Bool { field(column, 1)[0] != 0 }
    package func int16(_ column: Int) -> Int16 { Int16(truncatingIfNeeded: integer(column, 2)) }
    package func int32(_ column: Int) -> Int32 { Int32(truncatingIfNeeded: integer(column, 4)) }
    package func int64(_ column: Int) -> Int64 { Int64(bitPattern: integer(column, 8)) }
    package func text(_ column: Int) -> String { String(decoding: field(column, nil), as: UTF8.self) }
    package func bytes(_ column: Int) -> [UInt8] { Array(field(column, nil)) }

    private func integer(_ column: Int, _ width: Int) -> UInt64 {
        field(column, width).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private func field(_ column: Int, _ width: Int?) -> UnsafeRawBufferPointer {
        let column = Int32(column)
        precondition(column < PQnfields(result.pointer), "the result has no column \(column)")
        let length = Int(PQgetlength(result.pointer, index, column))
        precondition(width == nil || width == length, "column \(column) has \(length) bytes, not \(width ?? 0)")
        return UnsafeRawBufferPointer(start: PQgetvalue(result.pointer, index, column), count: length)
    }
}

/// Frees libpq's memory with the last row.
// Unchecked: a PGresult is only read after it was made, which libpq allows from any thread (libpq: Threading).
private final class ResultBox: @unchecked Sendable {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { PQclear(pointer) }
}
