/// The type of an attribute's values.
public enum AttributeType: String, Sendable, Hashable, CaseIterable {
    /// Unicode text without NUL.
    case text
    /// A 64-bit integer.
    case integer
    /// A finite 64-bit floating-point number.
    case double
    /// A decimal number with up to 38 digits, such as an amount of money; text in JSON.
    case decimal
    /// True or false.
    case boolean
    /// A point in time, in whole milliseconds; in JSON milliseconds since 1970 or ISO 8601 text.
    case date
    /// Bytes; Base64 in JSON.
    case bytes
    /// Any JSON. Queries cannot test its content.
    case json
}
