/// A parameter in PostgreSQL's binary format (type send and receive functions).
package enum PostgresValue: Sendable {
    case null
    case bool(Bool)
    case int16(Int16)
    case int32(Int32)
    case int64(Int64)
    case text(String)
    case bytes([UInt8])
    case boolArray([Bool?])
    case int16Array([Int16?])
    case int32Array([Int32?])
    case int64Array([Int64?])
    case textArray([String?])
    case bytesArray([[UInt8]?])

    /// The object id of the type, from PostgreSQL's catalog (pg_type.dat). With 0 the server infers the type.
    var typeID: UInt32 {
        switch self {
        case .null: 0
        case .bool: 16
        case .bytes: 17
        case .int64: 20
        case .int16: 21
        case .int32: 23
        case .text: 25
        case .boolArray: 1000
        case .bytesArray: 1001
        case .int16Array: 1005
        case .int32Array: 1007
        case .textArray: 1009
        case .int64Array: 1016
        }
    }

    /// The bytes on the wire; nil for null.
    var encoded: [UInt8]? {
        var bytes: [UInt8] = []
        switch self {
        case .null: return nil
        case .bool(let value): bytes = [value ? 1 : 0]
        case .int16(let value): bytes.append(bigEndian: value)
        case .int32(let value): bytes.append(bigEndian: value)
        case .int64(let value): bytes.append(bigEndian: value)
        case .text(let value): bytes = Array(value.utf8)
        case .bytes(let value): bytes = value
        case .boolArray(let values): Self.encode(values, of: 16, into: &bytes) { $1.append($0 ? 1 : 0) }
        case .int16Array(let values): Self.encode(values, of: 21, into: &bytes) { $1.append(bigEndian: $0) }
        case .int32Array(let values): Self.encode(values, of: 23, into: &bytes) { $1.append(bigEndian: $0) }
        case .int64Array(let values): Self.encode(values, of: 20, into: &bytes) { $1.append(bigEndian: $0) }
        case .textArray(let values): Self.encode(values, of: 25, into: &bytes) { $1.append(contentsOf: $0.utf8) }
        case .bytesArray(let values): Self.encode(values, of: 17, into: &bytes) { $1.append(contentsOf: $0) }
        }
        return bytes
    }

    /// One-dimensional array: dimensions, null flag, element type, length, lower bound, then length-prefixed elements.
    private static func encode<Element>(
        _ values: [Element?], of elementType: Int32, into bytes: inout [UInt8],
        _ append: (Element, inout [UInt8]) -> Void
    ) {
        bytes.reserveCapacity(20 + values.count * 16)
        bytes.append(bigEndian: Int32(1))
        bytes.append(bigEndian: Int32(values.contains { $0 == nil } ? 1 : 0))
        bytes.append(bigEndian: elementType)
        bytes.append(bigEndian: Int32(values.count))
        bytes.append(bigEndian: Int32(1))
        for value in values {
            guard let value else {
                bytes.append(bigEndian: Int32(-1))
                continue
            }
            let lengthAt = bytes.count
            bytes.append(bigEndian: Int32(0))
            append(value, &bytes)
            let length = UInt32(bytes.count - lengthAt - 4)
            for index in 0..<4 { bytes[lengthAt + index] = UInt8(truncatingIfNeeded: length >> (24 - 8 * index)) }
        }
    }
}

extension [UInt8] {
    /// Appends an integer, most significant byte first.
    fileprivate mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
