public import Foundation

/// A JSON value. All client modules use this type.
///
/// A decoded number has the first case that represents it: `integer`, `number`, `decimal`. So equal texts of numbers
/// are equal values.
public enum JSONValue: Sendable, Hashable, Codable {
    case null
    case boolean(Bool)
    case integer(Int64)
    /// A number that is not a 64-bit integer.
    case number(Double)
    /// A number with more digits than a `Double` has; up to 38 digits.
    case decimal(Decimal)
    case text(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(String.self) {
            self = .text(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else if let value = try? container.decode(Double.self) {
            if let exact = try? container.decode(Decimal.self), let rounded = Decimal(string: "\(value)"),
                exact != rounded
            {
                self = .decimal(exact)
            } else {
                self = .number(value)
            }
        } else if let value = try? container.decode([String: JSONValue].self) {
            self = .object(value)
        } else {
            self = .array(try container.decode([JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .boolean(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .decimal(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }

    /// Parses JSON text in UTF-8.
    ///
    /// - Throws: `SyncError.invalidArgument` when the bytes are not JSON.
    public init(parsing bytes: some Sequence<UInt8>) throws(SyncError) {
        do {
            self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
        } catch {
            throw SyncError(.invalidArgument, "the payload is not JSON")
        }
    }

    /// Encodes the value as JSON text in UTF-8. Members are sorted by name, so equal values have equal bytes.
    ///
    /// - Throws: `SyncError.invalidArgument` for a number that is not finite.
    public func bytes() throws(SyncError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return [UInt8](try encoder.encode(self))
        } catch {
            throw SyncError(.invalidArgument, "a number that is not finite cannot be encoded as JSON")
        }
    }

    /// The members of an object; nil for anything else.
    public var members: [String: JSONValue]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The text; nil for anything else.
    public var string: String? {
        if case .text(let text) = self { text } else { nil }
    }

    /// The number, rounded to a `Double`; nil for anything else.
    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .decimal(let value): Double("\(value)")
        default: nil
        }
    }

    /// The integer; nil for anything else.
    public var wholeNumber: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral
{
    public init(stringLiteral value: String) { self = .text(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}
