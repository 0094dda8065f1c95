/// The JSON of a tenant's answer (RFC 8259), read strictly: a text that two readers could take for two things, such
/// as one with a member named twice, is no answer.
package enum AnswerJSON: Equatable, Sendable {
    case null
    case bool(Bool)
    /// Its digits as they stand; no rule looks at a number.
    case number(String)
    case text(String)
    case array([AnswerJSON])
    case object([String: AnswerJSON])

    /// Nil when the bytes are no JSON, are nested deeper than that, or name a member twice.
    ///
    /// - Parameter levels: of objects and arrays, at most.
    package init?(_ bytes: some Sequence<UInt8>, levels: Int = depthMax) {
        var reader = Reader(bytes: Array(bytes), levels: levels)
        guard let value = try? reader.document() else { return nil }
        self = value
    }

    /// Deeper than any answer's form, and shallow enough for every stack.
    package static let depthMax = 16

    /// The members of an object; nil for everything else.
    package var members: [String: AnswerJSON]? {
        if case .object(let members) = self { return members }
        return nil
    }
}

/// A position in the bytes that moves on with what it reads.
private struct Reader {
    struct Fault: Error {}

    let bytes: [UInt8]
    private let levels: Int
    private var position = 0

    init(bytes: [UInt8], levels: Int) {
        self.bytes = bytes
        self.levels = levels
    }

    mutating func document() throws(Fault) -> AnswerJSON {
        let value = try value(depth: 0)
        skipSpace()
        guard position == bytes.count else { throw Fault() }
        return value
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ byte: Character) -> Bool {
        guard let wanted = byte.asciiValue, next == wanted else { return false }
        position += 1
        return true
    }

    private mutating func require(_ word: String) throws(Fault) {
        for character in word where !take(character) { throw Fault() }
    }

    private mutating func value(depth: Int) throws(Fault) -> AnswerJSON {
        guard depth <= levels else { throw Fault() }
        skipSpace()
        switch next.map({ Character(Unicode.Scalar($0)) }) {
        case "{": return .object(try object(depth: depth))
        case "[": return .array(try array(depth: depth))
        case "\"": return .text(try text())
        case "t":
            try require("true")
            return .bool(true)
        case "f":
            try require("false")
            return .bool(false)
        case "n":
            try require("null")
            return .null
        default: return .number(try number())
        }
    }

    private mutating func object(depth: Int) throws(Fault) -> [String: AnswerJSON] {
        var members: [String: AnswerJSON] = [:]
        try require("{")
        skipSpace()
        if take("}") { return members }
        repeat {
            skipSpace()
            let name = try text()
            skipSpace()
            try require(":")
            guard members.updateValue(try value(depth: depth + 1), forKey: name) == nil else { throw Fault() }
            skipSpace()
        } while take(",")
        try require("}")
        return members
    }

    private mutating func array(depth: Int) throws(Fault) -> [AnswerJSON] {
        var elements: [AnswerJSON] = []
        try require("[")
        skipSpace()
        if take("]") { return elements }
        repeat {
            elements.append(try value(depth: depth + 1))
            skipSpace()
        } while take(",")
        try require("]")
        return elements
    }

    private mutating func text() throws(Fault) -> String {
        try require("\"")
        var utf8: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: utf8, as: UTF8.self) else { throw Fault() }
                return text
            case UInt8(ascii: "\\"): utf8 += Array(String(try escape()).utf8)
            case 0..<0x20: throw Fault()
            default: utf8.append(byte)
            }
        }
        throw Fault()
    }

    private mutating func escape() throws(Fault) -> Unicode.Scalar {
        guard let byte = next else { throw Fault() }
        position += 1
        switch Character(Unicode.Scalar(byte)) {
        case "\"": return "\""
        case "\\": return "\\"
        case "/": return "/"
        case "b": return "\u{8}"
        case "f": return "\u{C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "u": return try unicodeEscape()
        default: throw Fault()
        }
    }

    /// Four hex digits, or twice four where they are halves of a surrogate pair.
    private mutating func unicodeEscape() throws(Fault) -> Unicode.Scalar {
        let first = try hexUnit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        try require("\\u")
        let second = try hexUnit()
        guard (0xD800..<0xDC00).contains(first), (0xDC00..<0xE000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw Fault() }
        return scalar
    }

    private mutating func hexUnit() throws(Fault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = next.flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else { throw Fault() }
            position += 1
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    private mutating func number() throws(Fault) -> String {
        let start = position
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func digits() throws(Fault) {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw Fault() }
    }
}
