/// Resolves the escapes of a JSON string (RFC 8259 section 7).
enum JSONEscapes {
    /// The decoded text of the content between the quotes.
    static func resolve(_ raw: ArraySlice<UInt8>) throws(JSONFault) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(raw.count)
        var index = raw.startIndex
        while index < raw.endIndex {
            guard raw[index] == UInt8(ascii: "\\") else {
                text.append(raw[index])
                index += 1
                continue
            }
            guard index + 1 < raw.endIndex else { throw .malformed(at: index) }
            if raw[index + 1] == UInt8(ascii: "u") {
                let (scalar, length) = try scalar(raw, at: index)
                text.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
                index += length
            } else {
                text.append(try character(raw[index + 1], at: index))
                index += 2
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func character(_ letter: UInt8, at index: Int) throws(JSONFault) -> UInt8 {
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): letter
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: throw .malformed(at: index)
        }
    }

    /// Decodes one `\uXXXX`, or two that form a surrogate pair. UTF-8 cannot contain half a pair.
    private static func scalar(
        _ raw: ArraySlice<UInt8>, at index: Int
    ) throws(JSONFault) -> (scalar: Unicode.Scalar, length: Int) {
        let first = try unit(raw, at: index)
        if let scalar = Unicode.Scalar(UInt32(first)) { return (scalar, 6) }
        guard UTF16.isLeadSurrogate(first) else { throw .loneSurrogate }
        guard index + 7 < raw.endIndex, raw[index + 6] == UInt8(ascii: "\\"), raw[index + 7] == UInt8(ascii: "u") else {
            throw .loneSurrogate
        }
        let second = try unit(raw, at: index + 6)
        guard UTF16.isTrailSurrogate(second) else { throw .loneSurrogate }
        return (UTF16.decode(UTF16.EncodedScalar([first, second])), 12)
    }

    private static func unit(_ raw: ArraySlice<UInt8>, at index: Int) throws(JSONFault) -> UInt16 {
        guard index + 6 <= raw.endIndex else { throw .malformed(at: index) }
        var unit: UInt16 = 0
        for byte in raw[(index + 2)..<(index + 6)] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw .malformed(at: index)
            }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }
}

extension String {
    /// Appends the text as a JSON string with its quotes (RFC 8259 section 7).
    package mutating func appendJSONString(_ text: String) {
        append("\"")
        if text.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            append(text)
        } else {
            for scalar in text.unicodeScalars { appendEscaped(scalar) }
        }
        append("\"")
    }

    private mutating func appendEscaped(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "\"": append("\\\"")
        case "\\": append("\\\\")
        case "\n": append("\\n")
        case "\r": append("\\r")
        case "\t": append("\\t")
        case _ where scalar.value < 0x20:
            let hex = String(scalar.value, radix: 16)
            append("\\u" + String(repeating: "0", count: 4 - hex.count) + hex)
        default: unicodeScalars.append(scalar)
        }
    }
}
