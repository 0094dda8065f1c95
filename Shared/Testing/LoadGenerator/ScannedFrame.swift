/// The parts of a gateway's frame that a load device needs, read without decoding the rest.
///
/// Ranges refer to the scanned bytes.
enum ScannedFrame: Hashable, Sendable {
    /// Batches of oplogs, for `ScannedBatch.each`.
    case push(Range<Int>)
    case caughtUp
    case recorded(reportID: UInt64)
    case ping(number: UInt64)
    /// The answer to submitted operations, a serialized `Mss_Device_V1_OperationsTaken`.
    case operationsTaken(Range<Int>)
    case close(code: UInt64, retryAfterMilliseconds: UInt64)
    /// The session is accepted, with the heartbeat interval.
    case connected(heartbeatSeconds: UInt64)
    /// A frame that a load run does not need.
    case other

    /// Reads one frame's message, without its length prefix. Returns nil if it is malformed.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var packet = WireReader(bytes)
        self = .other
        while let body = packet.next() {
            switch body.number {
            case 2: self = .connected(heartbeatSeconds: Self.integers(bytes, body.content, 2, 2).0)
            case 5: self = .push(body.content)
            case 8: self = .recorded(reportID: Self.integers(bytes, body.content, 1, 1).0)
            case 9: self = .caughtUp
            case 12: self = .ping(number: Self.integers(bytes, body.content, 1, 1).0)
            case 14:
                let (code, pause) = Self.integers(bytes, body.content, 1, 3)
                self = .close(code: code, retryAfterMilliseconds: pause)
            case 21: self = .operationsTaken(body.content)
            default: break
            }
        }
        if packet.isMalformed { return nil }
    }

    /// Two varint fields of a message.
    private static func integers(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ first: UInt64, _ second: UInt64
    ) -> (UInt64, UInt64) {
        var reader = WireReader(bytes, in: range)
        var found: (UInt64, UInt64) = (0, 0)
        while let field = reader.next() {
            if field.number == first { found.0 = field.integer }
            if field.number == second { found.1 = field.integer }
        }
        return found
    }
}
