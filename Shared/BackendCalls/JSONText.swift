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
