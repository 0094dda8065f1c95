extension AttributeTest {
    /// The comparison of a test. The names are those of the Client Object API (ENT5).
    ///
    /// As in SQL, null fulfils only `isNull`: neither a comparison nor its negation.
    public enum Comparison: String, Sendable, Hashable, CaseIterable {
        case isNull = "IS_NULL"
        case notNull = "NOT_NULL"
        case equal = "EQUAL"
        case notEqual = "NOT_EQUAL"
        /// A pattern: `%` stands for any text, `_` for one character, `\\` escapes the next character. ASCII letters
        /// match in both cases.
        case like = "LIKE"
        case notLike = "NOT_LIKE"
        case lessThan = "LESS_THAN"
        case lessEqual = "LESS_EQUAL"
        case greaterThan = "GREATER_THAN"
        case greaterEqual = "GREATER_EQUAL"
        /// A pattern: `*` stands for any text, `?` for one character, `[a-z]` for one of these characters. Case
        /// matters.
        case match = "MATCH"
        case notMatch = "NOT_MATCH"
        /// Text comparisons; case matters.
        case contains = "CONTAINS"
        case notContain = "NOT_CONTAIN"
        case startsWith = "STARTS_WITH"
        case notStartWith = "NOT_START_WITH"
        case endsWith = "ENDS_WITH"
        case notEndWith = "NOT_END_WITH"
        /// One of several values.
        case isIn = "IN"
        case notIn = "NOT_IN"

        /// Whether the comparison applies to attributes of this type.
        func applies(to type: AttributeType) -> Bool {
            switch self {
            case .isNull, .notNull: true
            case .equal, .notEqual, .isIn, .notIn: type != .json
            case .lessThan, .lessEqual, .greaterThan, .greaterEqual:
                type == .text || type == .integer || type == .double || type == .decimal || type == .date
            case .like, .notLike, .match, .notMatch, .contains, .notContain, .startsWith, .notStartWith, .endsWith,
                .notEndWith:
                type == .text
            }
        }
    }
}
