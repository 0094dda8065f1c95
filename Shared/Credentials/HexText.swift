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

    /// The bytes of a text of hex digits in any case; nil for any other text.
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
