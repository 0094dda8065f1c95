public import Foundation
public import MobileSync

/// The value of an attribute in one row.
public enum AttributeValue: Sendable, Hashable {
    case null
    case text(String)
    case integer(Int64)
    case double(Double)
    case decimal(Decimal)
    case boolean(Bool)
    case date(Date)
    case bytes([UInt8])
    case json(JSONValue)

    /// The type of the value; nil for null, which every nullable attribute accepts.
    public var type: AttributeType? {
        switch self {
        case .null: nil
        case .text: .text
        case .integer: .integer
        case .double: .double
        case .decimal: .decimal
        case .boolean: .boolean
        case .date: .date
        case .bytes: .bytes
        case .json: .json
        }
    }

    /// The text; nil for null and every other type.
    public var asText: String? { if case .text(let value) = self { value } else { nil } }
    /// The integer; nil for null and every other type.
    public var asInteger: Int64? { if case .integer(let value) = self { value } else { nil } }
    /// The number; nil for null and every other type.
    public var asDouble: Double? { if case .double(let value) = self { value } else { nil } }
    /// The decimal number; nil for null and every other type.
    public var asDecimal: Decimal? { if case .decimal(let value) = self { value } else { nil } }
    /// True or false; nil for null and every other type.
    public var asBoolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    /// The date; nil for null and every other type.
    public var asDate: Date? { if case .date(let value) = self { value } else { nil } }
    /// The bytes; nil for null and every other type.
    public var asBytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
    /// The JSON; nil for null and every other type.
    public var asJSON: JSONValue? { if case .json(let value) = self { value } else { nil } }

    /// Converts the value to the stored form of a type: integers become doubles for a double attribute, integers and
    /// doubles become decimals for a decimal attribute, and dates are rounded to milliseconds.
    ///
    /// - Returns: nil when the value has another type, is not finite, or is text with a NUL, which would end the text
    ///   in SQLite.
    func converted(to type: AttributeType) -> AttributeValue? {
        switch (self, type) {
        case (.null, _), (.integer, .integer), (.boolean, .boolean), (.bytes, .bytes): self
        case (.text(let value), .text): value.utf8.contains(0) ? nil : self
        case (.json(let value), .json): value == .null ? .null : self
        case (.double(let value), .double): value.isFinite ? self : nil
        case (.integer(let value), .double): .double(Double(value))
        case (.decimal(let value), .decimal): value.isFinite ? self : nil
        case (.integer(let value), .decimal): .decimal(Decimal(value))
        case (.double(let value), .decimal): Self.decimal("\(value)")
        case (.date(let date), .date): Self.milliseconds(of: date).map { .moment($0) }
        default: nil
        }
    }

    /// A decimal number from its digits; nil for other text.
    static func decimal(_ text: String) -> AttributeValue? {
        guard text.wholeMatch(of: /[+-]?\d+(\.\d+)?([eE][+-]?\d+)?/) != nil, let value = Decimal(string: text),
            value.isFinite
        else { return nil }
        return .decimal(value)
    }

    /// A date from milliseconds since 1970.
    static func moment(_ milliseconds: Int64) -> AttributeValue {
        .date(Date(timeIntervalSince1970: Double(milliseconds) / 1_000))
    }

    /// Milliseconds since 1970; nil for a date about 280,000 years away, which a double cannot represent in
    /// milliseconds.
    static func milliseconds(of date: Date) -> Int64? {
        let exact = (date.timeIntervalSince1970 * 1_000).rounded()
        return abs(exact) <= 9_007_199_254_740_992 ? Int64(exact) : nil
    }

    // MARK: JSON

    /// The value in the JSON of imports and operations.
    var wire: JSONValue {
        switch self {
        case .null: .null
        case .text(let value): .text(value)
        case .integer(let value): .integer(value)
        case .double(let value): .number(value)
        case .decimal(let value): .text("\(value)")
        case .boolean(let value): .boolean(value)
        case .date(let value): .integer(Self.milliseconds(of: value) ?? 0)
        case .bytes(let value): .text(Data(value).base64EncodedString())
        case .json(let value): value
        }
    }

    /// Decodes the value of an attribute of this type from an import; nil when it has another type.
    init?(wire: JSONValue, type: AttributeType) {
        switch (wire, type) {
        case (.null, _): self = .null
        case (.text(let value), .text):
            guard !value.utf8.contains(0) else { return nil }
            self = .text(value)
        case (.integer(let value), .integer): self = .integer(value)
        case (.number(let value), .integer):
            guard let whole = Int64(exactly: value) else { return nil }
            self = .integer(whole)
        case (.integer, .double), (.number, .double), (.decimal, .double):
            guard let value = wire.double else { return nil }
            self = .double(value)
        case (.text(let value), .decimal):
            guard let decimal = Self.decimal(value) else { return nil }
            self = decimal
        case (.integer(let value), .decimal): self = .decimal(Decimal(value))
        case (.number(let value), .decimal):
            guard let decimal = Self.decimal("\(value)") else { return nil }
            self = decimal
        case (.decimal(let value), .decimal): self = .decimal(value)
        case (.boolean(let value), .boolean): self = .boolean(value)
        case (.integer(let value), .date):
            guard abs(Double(value)) <= 9_007_199_254_740_992 else { return nil }
            self = .moment(value)
        case (.text(let value), .date):
            guard let date = Self.date(iso8601: value), let whole = Self.milliseconds(of: date) else { return nil }
            self = .moment(whole)
        case (.text(let value), .bytes):
            guard let data = Data(base64Encoded: value) else { return nil }
            self = .bytes([UInt8](data))
        case (let value, .json): self = .json(value)
        default: return nil
        }
    }

    private static func date(iso8601 text: String) -> Date? {
        (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
            ?? (try? Date.ISO8601FormatStyle().parse(text))
    }
}

extension AttributeValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral
{
    public init(stringLiteral value: String) { self = .text(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}
