/// A type that one column of a row has.
///
/// The decoders are inlinable, so that other modules specialize them: the oplog writer decodes each row of its batches.
@usableFromInline
package protocol PostgresDecodable {
    /// Decodes the next column.
    init(next columns: inout PostgresColumns) throws(PostgresError)
}

extension Bool: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) { self = try columns.next(.bool)[0] != 0 }
}

extension Int16: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) {
        self.init(bigEndian: try columns.next(.smallint).loadUnaligned(as: Self.self))
    }
}

extension Int32: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) {
        self.init(bigEndian: try columns.next(.integer).loadUnaligned(as: Self.self))
    }
}

extension Int64: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) {
        self.init(bigEndian: try columns.next(.bigint).loadUnaligned(as: Self.self))
    }
}

/// Of any integer type, for numbers whose width in the database does not matter.
extension Int: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) {
        let bytes = try columns.next(.wholeNumber)
        switch bytes.count {
        case 2: self.init(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
        case 4: self.init(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        default: self.init(Int64(bigEndian: bytes.loadUnaligned(as: Int64.self)))
        }
    }
}

extension String: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) {
        self.init(decoding: try columns.next(.text), as: UTF8.self)
    }
}

extension [UInt8]: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) { self.init(try columns.next(.bytea)) }
}

/// A nil value means: null.
extension Optional: PostgresDecodable where Wrapped: PostgresDecodable {
    @inlinable
    package init(next columns: inout PostgresColumns) throws(PostgresError) {
        guard !columns.isNextNull else {
            columns.skip()
            self = nil
            return
        }
        self = try Wrapped(next: &columns)
    }
}
