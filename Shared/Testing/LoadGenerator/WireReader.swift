/// Reads the fields of a protobuf message in place (DeviceProtocol.md, Protobuf in brief), for callers that need only a
/// few fields.
struct WireReader {
    /// One field. It has no value if its wire type is neither varint nor length-delimited.
    struct Field {
        let number: UInt64
        /// Value of a varint field.
        var integer: UInt64 = 0
        /// Range of the content of a length-delimited field.
        var content = 0..<0
    }

    private let bytes: UnsafeRawBufferPointer
    private var position: Int
    private let end: Int
    /// The bytes are not a valid message, and reading has stopped.
    private(set) var isMalformed = false

    /// - Parameter range: range of the message within the bytes. The value is nil for all bytes.
    init(_ bytes: UnsafeRawBufferPointer, in range: Range<Int>? = nil) {
        self.bytes = bytes
        position = range?.lowerBound ?? 0
        end = range?.upperBound ?? bytes.count
    }

    /// The next field. The value is nil at the end or after malformed bytes.
    mutating func next() -> Field? {
        guard position < end else { return nil }
        guard let tag = varint() else { return nil }
        var field = Field(number: tag >> 3)
        guard field.number > 0 else { return malformed() }
        switch tag & 7 {
        case 0:
            guard let value = varint() else { return nil }
            field.integer = value
        case 1: guard skip(8) else { return malformed() }
        case 2:
            guard let length = varint(), length <= UInt64(end - position) else { return malformed() }
            field.content = position..<(position + Int(length))
            position = field.content.upperBound
        case 5: guard skip(4) else { return malformed() }
        default: return malformed()
        }
        return field
    }

    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < end, shift < 70 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        isMalformed = true
        return nil
    }

    private mutating func skip(_ count: Int) -> Bool {
        guard count <= end - position else { return false }
        position += count
        return true
    }

    private mutating func malformed() -> Field? {
        isMalformed = true
        return nil
    }
}
