import Foundation

/// Splits a JSON text into its parts without a change of their spelling (RFC 8259), because the values belong to the
/// backend. The services' `JSONReader` removes white space and refuses a repeated name, but a device keeps the text that
/// it was sent.
struct JSONSlices {
    /// The deepest nesting of objects and arrays; a deeper text is invalid.
    private static let levels = 64

    private let bytes: [UInt8]
    private var position: Int

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
        position = 0
    }

    /// Returns the members of an object with their original spelling; nil for any other text. A repeated name keeps its
    /// last value.
    static func members(of bytes: [UInt8]) -> [String: [UInt8]]? {
        var reader = JSONSlices(bytes)
        var members: [String: [UInt8]] = [:]
        let isWhole = reader.object(level: 1) { name, value in members[name] = value }
        return isWhole && reader.isAtEnd ? members : nil
    }

    /// Returns the elements of an array with their original spelling; nil for any other text.
    static func elements(of bytes: [UInt8]) -> [[UInt8]]? {
        var reader = JSONSlices(bytes)
        var elements: [[UInt8]] = []
        return reader.array(level: 1) { elements.append($0) } && reader.isAtEnd ? elements : nil
    }

    /// Returns the text of a JSON string; nil for any other value.
    static func text(_ value: [UInt8]?) -> String? {
        guard let value, value.first == UInt8(ascii: "\"") else { return nil }
        return try? JSONDecoder().decode(String.self, from: Data(value))
    }

    private var isAtEnd: Bool {
        bytes[position...].allSatisfy { Self.isSpace($0) }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
    }

    private mutating func skipSpace() {
        while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
    }

    private mutating func consume(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, UInt32(bytes[position]) == character.value else { return false }
        position += 1
        return true
    }

    private mutating func object(level: Int, _ found: (String, [UInt8]) -> Void) -> Bool {
        skipSpace()
        guard level <= Self.levels, consume("{") else { return false }
        skipSpace()
        if consume("}") { return true }
        repeat {
            skipSpace()
            let start = position
            guard string(), let name = Self.text(Array(bytes[start..<position])) else { return false }
            skipSpace()
            guard consume(":"), let value = value(level: level) else { return false }
            found(name, value)
            skipSpace()
        } while consume(",")
        return consume("}")
    }

    private mutating func array(level: Int, _ found: ([UInt8]) -> Void) -> Bool {
        skipSpace()
        guard level <= Self.levels, consume("[") else { return false }
        skipSpace()
        if consume("]") { return true }
        repeat {
            guard let value = value(level: level) else { return false }
            found(value)
            skipSpace()
        } while consume(",")
        return consume("]")
    }

    private mutating func value(level: Int) -> [UInt8]? {
        skipSpace()
        let start = position
        guard position < bytes.count else { return nil }
        let isWhole: Bool
        switch bytes[position] {
        case UInt8(ascii: "{"): isWhole = object(level: level + 1) { _, _ in }
        case UInt8(ascii: "["): isWhole = array(level: level + 1) { _ in }
        case UInt8(ascii: "\""): isWhole = string()
        default: isWhole = word()
        }
        return isWhole ? Array(bytes[start..<position]) : nil
    }

    private mutating func string() -> Bool {
        guard consume("\"") else { return false }
        while position < bytes.count, bytes[position] >= 0x20 {
            let byte = bytes[position]
            position += byte == UInt8(ascii: "\\") ? 2 : 1
            if byte == UInt8(ascii: "\"") { return true }
        }
        return false
    }

    /// Reads a number, true, false or null.
    private mutating func word() -> Bool {
        let start = position
        while position < bytes.count, !Self.isSpace(bytes[position]), !Self.ends.contains(bytes[position]) {
            position += 1
        }
        return (try? JSONSerialization.jsonObject(with: Data(bytes[start..<position]), options: .fragmentsAllowed))
            != nil
    }

    private static let ends = Set(",]}".utf8)
}
