/// A strict reader of one JSON object that keeps the text of its members; pure.
///
/// Foundation's decoder takes duplicate members silently, allows any depth and keeps no text; the API's rules need
/// the opposite (spec H2, H3). Unknown members are checked as JSON and otherwise ignored.
struct JSONText {
    /// A member's value. Spans are of the bytes read.
    enum Value: Equatable {
        case string(String)
        case number(String)
        case bool
        case null
        /// An object or array as text, without white space between its tokens.
        case structure([UInt8])
    }

    /// Why the bytes are no such object.
    enum Problem: String, Error {
        case notUTF8 = "the body is not valid UTF-8"
        case notAnObject = "the body is not a JSON object"
        case malformed = "the body is not valid JSON"
        case duplicateMember = "the body names a member twice"
        case tooDeep = "the body is nested deeper than 16 levels"
    }

    private static let depthMax = 16

    private let bytes: [UInt8]
    private var position = 0
    /// White-space-free copy of the structure being read, nil outside one.
    private var compact: [UInt8]?

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Reads an object.
    static func object(_ bytes: [UInt8]) throws(Problem) -> [String: Value] {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw .notUTF8 }
        var reader = JSONText(bytes)
        reader.skipSpace()
        guard reader.peek == UInt8(ascii: "{") else { throw .notAnObject }
        var members: [String: Value] = [:]
        try reader.members(depth: 1) { (reader: inout JSONText, name) throws(Problem) in
            members[name] = try reader.value(depth: 1)
        }
        reader.skipSpace()
        guard reader.peek == nil else { throw .malformed }
        return members
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func advance() {
        compact?.append(bytes[position])
        position += 1
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func expect(_ character: Unicode.Scalar) throws(Problem) {
        guard peek == UInt8(ascii: character) else { throw .malformed }
        advance()
    }

    private mutating func members(
        depth: Int, _ read: (inout JSONText, String) throws(Problem) -> Void
    ) throws(Problem) {
        guard depth <= Self.depthMax else { throw .tooDeep }
        var names: Set<String> = []
        try expect("{")
        skipSpace()
        if peek == UInt8(ascii: "}") { return advance() }
        while true {
            skipSpace()
            let name = try string()
            guard names.insert(name).inserted else { throw .duplicateMember }
            skipSpace()
            try expect(":")
            skipSpace()
            try read(&self, name)
            skipSpace()
            if peek == UInt8(ascii: "}") { return advance() }
            try expect(",")
        }
    }

    private mutating func elements(depth: Int) throws(Problem) {
        guard depth <= Self.depthMax else { throw .tooDeep }
        try expect("[")
        skipSpace()
        if peek == UInt8(ascii: "]") { return advance() }
        while true {
            skipSpace()
            _ = try value(depth: depth)
            skipSpace()
            if peek == UInt8(ascii: "]") { return advance() }
            try expect(",")
        }
    }

    private mutating func value(depth: Int) throws(Problem) -> Value {
        switch peek {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            let isOutermost = compact == nil
            if isOutermost { compact = [] }
            if peek == UInt8(ascii: "{") {
                try members(depth: depth + 1) { (reader: inout JSONText, _) throws(Problem) in
                    _ = try reader.value(depth: depth + 1)
                }
            } else {
                try elements(depth: depth + 1)
            }
            guard isOutermost else { return .null }
            defer { compact = nil }
            return .structure(compact ?? [])
        case UInt8(ascii: "t"): return try word("true", .bool)
        case UInt8(ascii: "f"): return try word("false", .bool)
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func word(_ text: String, _ value: Value) throws(Problem) -> Value {
        for scalar in text.unicodeScalars { try expect(scalar) }
        return value
    }

    private mutating func number() throws(Problem) -> String {
        let start = position
        if peek == UInt8(ascii: "-") { advance() }
        if peek == UInt8(ascii: "0") { advance() } else { try digits() }
        if peek == UInt8(ascii: ".") {
            advance()
            try digits()
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            advance()
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { advance() }
            try digits()
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func digits() throws(Problem) {
        guard isDigit else { throw .malformed }
        while isDigit { advance() }
    }

    private var isDigit: Bool { peek.map { (0x30...0x39).contains($0) } ?? false }

    private mutating func string() throws(Problem) -> String {
        try expect("\"")
        var text: [UInt8] = []
        while let byte = peek {
            advance()
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw .malformed
            default: text.append(byte)
            }
        }
        throw .malformed
    }

    private mutating func escape(into text: inout [UInt8]) throws(Problem) {
        guard let byte = peek else { throw .malformed }
        advance()
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var unit = try codeUnit()
            if (0xD800..<0xDC00).contains(unit) {
                try expect("\\")
                try expect("u")
                let low = try codeUnit()
                guard (0xDC00..<0xE000).contains(low) else { throw .malformed }
                unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
            }
            // A lone surrogate is no character and has no UTF-8.
            guard let scalar = Unicode.Scalar(unit) else { throw .malformed }
            text.append(contentsOf: String(Character(scalar)).utf8)
        default: throw .malformed
        }
    }

    private mutating func codeUnit() throws(Problem) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw .malformed }
            advance()
            unit = unit << 4 + UInt32(digit)
        }
        return unit
    }
}
