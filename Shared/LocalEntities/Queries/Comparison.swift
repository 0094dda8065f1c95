/// How a test compares an attribute; the names are the neighbour's (spec, two-way §2).
///
/// As in SQL a null attribute passes `isNull` only: neither a comparison nor its opposite.
public enum Comparison: String, Sendable, Hashable, CaseIterable {
    case isNull = "IS_NULL"
    case notNull = "NOT_NULL"
    case equal = "EQUAL"
    case notEqual = "NOT_EQUAL"
    /// A pattern: `%` any text, `_` one character, `\\` before one that is meant itself; ASCII letters in either case.
    case like = "LIKE"
    case notLike = "NOT_LIKE"
    case lessThan = "LESS_THAN"
    case lessEqual = "LESS_EQUAL"
    case greaterThan = "GREATER_THAN"
    case greaterEqual = "GREATER_EQUAL"
    /// A pattern: `*` any text, `?` one character, `[a-z]` one of these; in this very case.
    case match = "MATCH"
    case notMatch = "NOT_MATCH"
    /// In this very case, as those below.
    case contains = "CONTAINS"
    case notContain = "NOT_CONTAIN"
    case startsWith = "STARTS_WITH"
    case notStartWith = "NOT_START_WITH"
    case endsWith = "ENDS_WITH"
    case notEndWith = "NOT_END_WITH"
    /// One of several values.
    case isIn = "IN"
    case notIn = "NOT_IN"

    /// Whether an attribute of this type can be tested so.
    func applies(to type: AttributeType) -> Bool {
        switch self {
        case .isNull, .notNull: true
        case .equal, .notEqual, .isIn, .notIn: type != .json
        case .lessThan, .lessEqual, .greaterThan, .greaterEqual:
            type == .text || type == .integer || type == .double || type == .date
        case .like, .notLike, .match, .notMatch, .contains, .notContain, .startsWith, .notStartWith, .endsWith,
            .notEndWith:
            type == .text
        }
    }
}
