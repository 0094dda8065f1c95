/// Strict decoder of Base64 with the standard alphabet and padding (RFC 4648 section 4).
package enum Base64 {
    /// The bytes. The value is nil for any other character, also white space, for wrong padding, or for unused bits
    /// that are not
    /// zero.
    package static func decode(_ text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { characters in
            guard characters.count % 4 == 0 else { return nil }
            let padding = characters.suffix(2).count { $0 == UInt8(ascii: "=") }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(characters.count / 4 * 3)
            var bits: UInt32 = 0
            var bitCount = 0
            for character in characters.dropLast(padding) {
                guard let six = value(of: character) else { return nil }
                bits = bits << 6 | six
                bitCount += 6
                if bitCount >= 8 {
                    bitCount -= 8
                    bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
                }
            }
            // Each content has one encoding: the unused bits must be zero.
            return bits & ((1 << UInt32(bitCount)) - 1) == 0 ? bytes : nil
        }
    }

    /// The text without the line breaks (CR, LF) that MIME and PEM encoders insert.
    package static func withoutLineBreaks(_ text: String) -> String {
        let breaks: [UInt8] = [UInt8(ascii: "\r"), UInt8(ascii: "\n")]
        guard text.utf8.contains(where: breaks.contains) else { return text }
        return String(decoding: text.utf8.filter { !breaks.contains($0) }, as: UTF8.self)
    }

    private static func value(of character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
