import Crypto

/// Bytes as lower-case hex, the form of signatures and nonces in headers.
package enum HexText {
    /// Two digits for each byte.
    package static func of(_ bytes: some Sequence<UInt8>) -> String {
        var text = ""
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                text.unicodeScalars.append(Unicode.Scalar(digit < 10 ? 0x30 + digit : 0x57 + digit))
            }
        }
        return text
    }

    /// The bytes of a text of hex digits, upper or lower case; nil for any other text.
    package static func bytes(of text: some StringProtocol) -> [UInt8]? {
        let digits = text.utf8.map { byte -> UInt8? in
            switch byte {
            case 0x30...0x39: byte - 0x30
            case 0x41...0x46: byte - 0x37
            case 0x61...0x66: byte - 0x57
            default: nil
            }
        }
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

/// Cryptographically random bytes from the system's generator.
package enum RandomBytes {
    /// Makes `count` bytes.
    package static func make(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}

/// Concatenates parts, each after its length, so that different lists never have the same bytes (SEC10).
enum LengthPrefixed {
    /// The bytes of the parts. A length is a 32-bit number in network byte order.
    static func bytes(of parts: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for part in parts {
            withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes.append(contentsOf: part)
        }
        return bytes
    }
}

/// The name of a session in the store and on the bus, where its id must not appear: the SHA-256 hash.
package enum SessionDigest {
    /// The hash of the id's UTF-8 bytes.
    package static func of(_ sessionID: String) -> [UInt8] { Array(SHA256.hash(data: Array(sessionID.utf8))) }
}
