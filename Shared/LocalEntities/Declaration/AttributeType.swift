/// What an attribute holds.
public enum AttributeType: String, Sendable, Hashable, CaseIterable {
    /// Unicode text without NUL.
    case text
    /// A whole number of 64 bits.
    case integer
    /// A finite number of 64 bits.
    case double
    /// True or false.
    case boolean
    /// A moment, to the millisecond; in JSON the milliseconds since 1970, or text of ISO 8601.
    case date
    /// Bytes; in JSON Base64.
    case bytes
    /// Any JSON; tests of its inside are not offered.
    case json
}
