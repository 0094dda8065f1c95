/// What a load run's device needs of a frame from a gateway, read without decoding the rest.
///
/// Ranges lie within the bytes that were scanned.
enum ScannedFrame: Hashable, Sendable {
    /// Batches of oplogs, for `ScannedBatch.each`.
    case push(Range<Int>)
    case caughtUp
    case recorded(reportID: UInt64)
    case ping(number: UInt64)
    /// What became of operations, as `Mss_Device_V1_OperationsTaken`.
    case operationsTaken(Range<Int>)
    case close(code: UInt64, retryAfterMilliseconds: UInt64)
    /// The device is known; with the interval at which it has to ping.
    case connected(heartbeatSeconds: UInt64)
    /// Nothing that a load run goes by.
    case other

    /// One frame's message, without the length before it; nil when it is malformed.
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
