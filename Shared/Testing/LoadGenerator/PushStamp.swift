/// The first bytes of a payload of a load run: the run, the push and its due time. So a receiver computes the latency
/// without a table, also in another process of this machine.
///
/// Format: `<run: 7>,<push: 10 digits>,<due: 16 hexadecimal digits>`.
struct PushStamp: Hashable, Sendable {
    /// Length of a run's name.
    static let runBytes = 7
    /// Position of the digits.
    static let numberOffset = runBytes + 1
    static let numberDigits = 10
    static let dueOffset = numberOffset + numberDigits + 1
    static let dueDigits = 16
    /// Length of the stamp.
    static let bytes = dueOffset + dueDigits

    let number: Int
    /// Nanoseconds of the monotonic clock.
    let due: Int64

    /// A random name of a run.
    static func makeRun() -> String {
        let text = String(UInt64.random(in: 0..<78_364_164_096), radix: 36)
        return String(repeating: "0", count: runBytes - text.count) + text
    }

    /// A stamp with zeros, which later stamps of the same run overwrite.
    static func placeholder(run: String) -> String {
        "\(run),\(String(repeating: "0", count: numberDigits)),\(String(repeating: "0", count: dueDigits))"
    }

    /// Reads a payload. Returns nil if it has no stamp of this run.
    init?(_ payload: UnsafeRawBufferPointer, run: [UInt8]) {
        guard payload.count >= Self.bytes, payload.prefix(Self.runBytes).elementsEqual(run) else { return nil }
        var number = 0
        for byte in payload[Self.numberOffset..<(Self.numberOffset + Self.numberDigits)] {
            guard byte >= 48, byte <= 57 else { return nil }
            number = number * 10 + Int(byte) - 48
        }
        var due: UInt64 = 0
        for byte in payload[Self.dueOffset..<Self.bytes] {
            switch byte {
            case 48...57: due = due << 4 | UInt64(byte - 48)
            case 97...102: due = due << 4 | UInt64(byte - 87)
            default: return nil
            }
        }
        self.number = number
        self.due = Int64(bitPattern: due)
    }
}
