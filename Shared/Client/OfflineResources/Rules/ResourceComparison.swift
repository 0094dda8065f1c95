import MobileSync

/// The comparison of a property with a value in `queryFor`. Values of different kinds and missing properties fulfil
/// only `notEqual`. Text is compared by Unicode order.
public enum ResourceComparison: String, Sendable, Hashable, CaseIterable {
    case equal
    case notEqual
    case less
    case lessOrEqual
    case greater
    case greaterOrEqual
    /// The text contains the value, or the list has it as an element.
    case contains
    case startsWith
    case endsWith

    func holds(_ left: JSONValue?, _ right: JSONValue) -> Bool {
        guard let left else { return self == .notEqual }
        switch self {
        case .equal: return Self.isEqual(left, right)
        case .notEqual: return !Self.isEqual(left, right)
        case .less: return Self.isLess(left, right) == true
        case .lessOrEqual: return Self.isEqual(left, right) || Self.isLess(left, right) == true
        case .greater: return Self.isLess(right, left) == true
        case .greaterOrEqual: return Self.isEqual(left, right) || Self.isLess(right, left) == true
        case .contains:
            if case .array(let values) = left { return values.contains { Self.isEqual($0, right) } }
            return Self.texts(left, right).map { $0.isEmpty || $1.contains($0) } ?? false
        case .startsWith: return Self.texts(left, right).map { $1.hasPrefix($0) } ?? false
        case .endsWith: return Self.texts(left, right).map { $1.hasSuffix($0) } ?? false
        }
    }

    /// Whether the values are equal. Numbers have several cases.
    private static func isEqual(_ left: JSONValue, _ right: JSONValue) -> Bool {
        switch (left, right) {
        case (.array(let left), .array(let right)):
            return left.count == right.count && zip(left, right).allSatisfy { isEqual($0, $1) }
        case (.object(let left), .object(let right)):
            return left.count == right.count
                && left.allSatisfy { name, value in right[name].map { isEqual(value, $0) } ?? false }
        default:
            if let left = left.exactNumber, let right = right.exactNumber { return left == right }
            return left == right
        }
    }

    /// Whether the left value is less; nil when the values have no order.
    private static func isLess(_ left: JSONValue, _ right: JSONValue) -> Bool? {
        if let left = left.exactNumber, let right = right.exactNumber { return left < right }
        guard case (.text(let left), .text(let right)) = (left, right) else { return nil }
        return left < right
    }

    /// The order of two values for sorting: below 0, 0 or above 0. Missing properties and null are first, then
    /// Booleans, numbers and texts; lists and objects are last and have no order among themselves.
    static func order(_ left: JSONValue?, _ right: JSONValue?) -> Int {
        switch (left, right) {
        case (.boolean(let left)?, .boolean(let right)?): return (left ? 1 : 0) - (right ? 1 : 0)
        case (let left?, let right?) where isLess(left, right) == true: return -1
        case (let left?, let right?) where isLess(right, left) == true: return 1
        default: return rank(left) - rank(right)
        }
    }

    private static func rank(_ value: JSONValue?) -> Int {
        switch value {
        case nil, .null: 0
        case .boolean: 1
        case .integer, .number, .decimal: 2
        case .text: 3
        case .array, .object: 4
        }
    }

    private static func texts(_ whole: JSONValue, _ part: JSONValue) -> (part: String, whole: String)? {
        guard case .text(let whole) = whole, case .text(let part) = part else { return nil }
        return (part, whole)
    }
}
