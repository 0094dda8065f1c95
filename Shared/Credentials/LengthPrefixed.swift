/// Parts written one after the other, each with its length before it, so that no two lists of parts read alike
/// (reliability SEC10).
enum LengthPrefixed {
    /// The parts' bytes; a length is a 32-bit number in network order.
    static func bytes(of parts: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for part in parts {
            withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: part)
        }
        return bytes
    }
}
