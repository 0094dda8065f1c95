import SyncModel

/// Reads the JSON of backends, tenants and apps strictly (RFC 8259): valid UTF-8, no duplicate members, a limit of
/// levels. So no two readers of an accepted text can read it differently. `JSONDecoder` accepts a duplicate member and
/// changes the spelling of numbers; it reads only files of operators, requests of signed-in accounts and texts that the
/// service wrote itself. Client libraries have readers of their own, because they import no server module.
///
/// It recurses no deeper than the level limit, so no input can exhaust the stack.
package struct JSONReader {
    /// Maximum levels of objects and arrays, with the outermost one (H3).
    package static let maximumDepth = 16

    private let bytes: [UInt8]
    private let levels: Int
    private var position = 0
    /// Collects the tokens of the outermost nested structure; nil outside of one.
    private var compact: [UInt8]?

    private init(_ bytes: [UInt8], levels: Int) {
        self.bytes = bytes
        self.levels = levels
    }

    /// The elements of an array that `members` has returned and checked.
    package static func elements(of bytes: [UInt8], levels: Int) throws(JSONFault) -> [JSONValue] {
        var reader = JSONReader(bytes, levels: levels)
        guard reader.consume("[") else { throw .notAnObject }
        return try reader.elementsAfterBracket(depth: 1)
    }

    /// The members of the object by name.
    ///
    /// - Parameter levels: maximum levels of objects and arrays.
    /// - Throws: the reason why the object cannot be read.
    package static func members(of bytes: [UInt8], levels: Int = maximumDepth) throws(JSONFault) -> [String: JSONValue]
    {
        // Checked once for the whole text, so that its parts need no further check.
        guard String(validating: bytes, as: UTF8.self) != nil else { throw .invalidUTF8 }
        var reader = JSONReader(bytes, levels: levels)
        reader.skipWhiteSpace()
        guard reader.consume("{") else { throw .notAnObject }
        let members = try reader.membersAfterBrace(depth: 1)
        reader.skipWhiteSpace()
        guard reader.position == bytes.count else { throw .malformed(at: reader.position) }
        // The names that callers of this function ask for are ASCII without K, so no other spelling equals them, and
        // no member is lost here.
        return Dictionary(members.map { ($0.key.text, $0.value) }) { first, _ in first }
    }

    /// Whether the bytes are one JSON value of any kind.
    ///
    /// - Parameter levels: maximum levels of objects and arrays.
    package static func isValid(_ bytes: [UInt8], levels: Int) -> Bool {
        guard String(validating: bytes, as: UTF8.self) != nil else { return false }
        var reader = JSONReader(bytes, levels: levels)
        guard (try? reader.value(depth: 0)) != nil else { return false }
        reader.skipWhiteSpace()
        return reader.position == bytes.count
    }

    /// Reads members up to and with the closing brace. The opening brace was already consumed.
    private mutating func membersAfterBrace(depth: Int) throws(JSONFault) -> [JSONName: JSONValue] {
        var members: [JSONName: JSONValue] = [:]
        skipWhiteSpace()
        if consume("}") { return members }
        while true {
            skipWhiteSpace()
            let name = JSONName(text: try string())
            skipWhiteSpace()
            guard consume(":") else { throw .malformed(at: position) }
            let value = try value(depth: depth)
            guard members.updateValue(value, forKey: name) == nil else { throw .duplicateMember }
            skipWhiteSpace()
            if consume("}") { return members }
            guard consume(",") else { throw .malformed(at: position) }
        }
    }

    private mutating func elementsAfterBracket(depth: Int) throws(JSONFault) -> [JSONValue] {
        var elements: [JSONValue] = []
        skipWhiteSpace()
        if consume("]") { return elements }
        while true {
            elements.append(try value(depth: depth))
            skipWhiteSpace()
            if consume("]") { return elements }
            guard consume(",") else { throw .malformed(at: position) }
        }
    }

    /// Reads one value inside a structure of the given depth.
    private mutating func value(depth: Int) throws(JSONFault) -> JSONValue {
        skipWhiteSpace()
        switch peek {
        case UInt8(ascii: "{"), UInt8(ascii: "["): return try structure(depth: depth + 1)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func structure(depth: Int) throws(JSONFault) -> JSONValue {
        guard depth <= levels else { throw .tooDeep }
        // The outermost nested structure collects the text of all levels inside it.
        let isOutermost = compact == nil
        if isOutermost { compact = [] }
        if consume("{") {
            _ = try membersAfterBrace(depth: depth)
        } else {
            _ = consume("[")
            _ = try elementsAfterBracket(depth: depth)
        }
        guard isOutermost else { return .structure([]) }
        defer { compact = nil }
        return .structure(compact ?? [])
    }

    private mutating func word(_ text: StaticString, _ value: JSONValue) throws(JSONFault) -> JSONValue {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count,
            bytes[position..<end].elementsEqual(
                UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        else { throw .malformed(at: position) }
        advance(to: end)
        return value
    }

    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    private mutating func number() throws(JSONFault) -> String {
        let start = position
        var end = position
        func isDigit(_ index: Int) -> Bool {
            index < bytes.count && bytes[index] >= UInt8(ascii: "0") && bytes[index] <= UInt8(ascii: "9")
        }
        func byte(_ index: Int) -> UInt8 { index < bytes.count ? bytes[index] : 0 }
        func digits(from index: Int) throws(JSONFault) -> Int {
            guard isDigit(index) else { throw .malformed(at: start) }
            var index = index
            while isDigit(index) { index += 1 }
            return index
        }
        if byte(end) == UInt8(ascii: "-") { end += 1 }
        end = byte(end) == UInt8(ascii: "0") ? end + 1 : try digits(from: end)
        if byte(end) == UInt8(ascii: ".") { end = try digits(from: end + 1) }
        if byte(end) | 0x20 == UInt8(ascii: "e") {
            end += 1
            if byte(end) == UInt8(ascii: "+") || byte(end) == UInt8(ascii: "-") { end += 1 }
            end = try digits(from: end)
        }
        advance(to: end)
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }

    private mutating func string() throws(JSONFault) -> String {
        guard peek == UInt8(ascii: "\"") else { throw .malformed(at: position) }
        let start = position + 1
        var end = start
        var hasEscape = false
        while true {
            guard end < bytes.count, bytes[end] >= 0x20 else { throw .malformed(at: end) }
            if bytes[end] == UInt8(ascii: "\"") { break }
            if bytes[end] == UInt8(ascii: "\\") {
                hasEscape = true
                end += 1
            }
            end += 1
        }
        let raw = bytes[start..<end]
        advance(to: end + 1)
        return hasEscape ? try JSONEscapes.resolve(raw) : String(decoding: raw, as: UTF8.self)
    }

    private var peek: UInt8 { position < bytes.count ? bytes[position] : 0 }

    private mutating func consume(_ token: Unicode.Scalar) -> Bool {
        guard position < bytes.count, UInt32(bytes[position]) == token.value else { return false }
        advance(to: position + 1)
        return true
    }

    private mutating func advance(to end: Int) {
        compact?.append(contentsOf: bytes[position..<end])
        position = end
    }

    private mutating func skipWhiteSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }
}

/// A member's value; nested objects and arrays stay text.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    /// The number in its original spelling.
    case number(String)
    case string(String)
    /// An object or array: its text without white space between tokens, otherwise in the original spelling.
    case structure([UInt8])
}

/// The name of a member. Two names are equal when their code units are equal (RFC 8259 section 8.3).
///
/// `String` also treats composed and decomposed characters (é) as equal, so it would report false duplicates.
private struct JSONName: Hashable, Sendable {
    let text: String

    static func == (left: JSONName, right: JSONName) -> Bool { left.text.isSame(as: right.text) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Why a body cannot be read as a JSON object.
package enum JSONFault: Error, Hashable, Sendable {
    case invalidUTF8
    case notAnObject
    /// A syntax error at this byte.
    case malformed(at: Int)
    case duplicateMember
    case tooDeep
    /// `\uD800` to `\uDFFF` without the other half of the pair.
    case loneSurrogate

    /// The error text for a backend.
    package var detail: String {
        switch self {
        case .invalidUTF8: "The body is not valid UTF-8; encode it in UTF-8."
        case .notAnObject: "The body is not a JSON object; send one object with the parameters as members."
        case .malformed(let position): "The body is not valid JSON at byte \(position); correct the syntax there."
        case .duplicateMember: "A member name occurs twice in one JSON object; send each parameter once."
        case .tooDeep:
            "The JSON is nested deeper than \(JSONReader.maximumDepth) levels; nest less or send it as a string."
        case .loneSurrogate: "A \\u escape is half of a surrogate pair; send both halves or the character itself."
        }
    }
}
