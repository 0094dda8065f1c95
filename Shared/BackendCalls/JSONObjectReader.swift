/// Reads one JSON object strictly (RFC 8259): UTF-8 throughout, no member twice, at most 16 levels.
///
/// A value type over the bytes; it recurses no deeper than the level limit, so no input can exhaust the stack.
package struct JSONObjectReader {
    /// Levels of objects and arrays, the outermost included (spec H3).
    package static let maximumDepth = 16

    private let bytes: [UInt8]
    private let levels: Int
    private var position = 0
    /// Gets every token as spelt while a nested structure is read; nil outside of one.
    private var compact: [UInt8]?

    private init(_ bytes: [UInt8], levels: Int) {
        self.bytes = bytes
        self.levels = levels
    }

    /// The elements of an array that `members` has found and checked.
    package static func elements(of bytes: [UInt8], levels: Int) throws(JSONFault) -> [JSONValue] {
        var reader = JSONObjectReader(bytes, levels: levels)
        guard reader.take("[") else { throw .notAnObject }
        return try reader.elementsAfterBracket(depth: 1)
    }

    /// The members of the object by name, or what makes it unreadable.
    ///
    /// - Parameter levels: of objects and arrays, at most.
    package static func members(of bytes: [UInt8], levels: Int = maximumDepth) throws(JSONFault) -> [String: JSONValue]
    {
        // Checked once for the whole text, so that every part of it may be decoded without a check.
        guard String(validating: bytes, as: UTF8.self) != nil else { throw .invalidUTF8 }
        var reader = JSONObjectReader(bytes, levels: levels)
        reader.skipWhiteSpace()
        guard reader.take("{") else { throw .notAnObject }
        let members = try reader.membersAfterBrace(depth: 1)
        reader.skipWhiteSpace()
        guard reader.position == bytes.count else { throw .malformed(at: reader.position) }
        // Parameters have names in ASCII without K, which no other spelling equals, so nothing given is lost here.
        return Dictionary(members.map { ($0.key.text, $0.value) }) { first, _ in first }
    }

    /// Reads members up to the closing brace; the opening one is consumed.
    private mutating func membersAfterBrace(depth: Int) throws(JSONFault) -> [JSONName: JSONValue] {
        var members: [JSONName: JSONValue] = [:]
        skipWhiteSpace()
        if take("}") { return members }
        while true {
            skipWhiteSpace()
            let name = JSONName(text: try string())
            skipWhiteSpace()
            guard take(":") else { throw .malformed(at: position) }
            let value = try value(depth: depth)
            guard members.updateValue(value, forKey: name) == nil else { throw .duplicateMember }
            skipWhiteSpace()
            if take("}") { return members }
            guard take(",") else { throw .malformed(at: position) }
        }
    }

    private mutating func elementsAfterBracket(depth: Int) throws(JSONFault) -> [JSONValue] {
        var elements: [JSONValue] = []
        skipWhiteSpace()
        if take("]") { return elements }
        while true {
            elements.append(try value(depth: depth))
            skipWhiteSpace()
            if take("]") { return elements }
            guard take(",") else { throw .malformed(at: position) }
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
        // The outermost nested structure collects the text for all below it.
        let isOutermost = compact == nil
        if isOutermost { compact = [] }
        if take("{") {
            _ = try membersAfterBrace(depth: depth)
        } else {
            _ = take("[")
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

    private mutating func take(_ token: Unicode.Scalar) -> Bool {
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
