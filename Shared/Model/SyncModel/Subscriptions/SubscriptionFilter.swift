/// A condition on an oplog's attributes and a receiver's parameters. It has a result for every input, and no loops,
/// regular expressions or calls.
///
/// A comparison is false when its attribute is missing, when its parameter has no value, or when its sides have
/// different types. Docs: deploy/manual/Filters.md.
package indirect enum SubscriptionFilter: Hashable, Sendable {
    /// One side of a comparison.
    package enum Operand: Hashable, Sendable {
        case attribute(String)
        case parameter(String)
        case literal(SubscriptionValue)
    }

    /// The comparison operators.
    package enum Comparison: String, Hashable, Sendable, CaseIterable {
        case equal = "=="
        case notEqual = "!="
        case less = "<"
        case lessOrEqual = "<="
        case greater = ">"
        case greaterOrEqual = ">="
        case startsWith
    }

    case compare(Operand, Comparison, Operand)
    /// Whether the first operand equals one of the others.
    case isOneOf(Operand, [Operand])
    case and(SubscriptionFilter, SubscriptionFilter)
    case or(SubscriptionFilter, SubscriptionFilter)
    case not(SubscriptionFilter)

    /// Reads an expression of at most `Limits.filterUnits` UTF-16 units, nested at most `Limits.filterDepth` deep.
    package init(_ text: String) throws(SubscriptionFault) {
        guard text.utf16.count <= Limits.filterUnits else {
            throw SubscriptionFault(at: 1, "a filter has at most \(Limits.filterUnits) characters")
        }
        var reader = FilterReader(text)
        self = try reader.filter()
        try reader.expectEnd()
    }

    /// Whether an oplog with these attributes matches.
    package func matches(_ attributes: SubscriptionValues, with parameters: SubscriptionValues) -> Bool {
        func value(of operand: Operand) -> SubscriptionValue? {
            switch operand {
            case .attribute(let name): attributes[name]
            case .parameter(let name): parameters[name]
            case .literal(let value): value
            }
        }
        switch self {
        case .compare(let left, let comparison, let right):
            guard let left = value(of: left), let right = value(of: right) else { return false }
            return comparison.holds(left, right)
        case .isOneOf(let operand, let list):
            guard let wanted = value(of: operand) else { return false }
            return list.contains { value(of: $0) == wanted }
        case .and(let left, let right):
            return left.matches(attributes, with: parameters) && right.matches(attributes, with: parameters)
        case .or(let left, let right):
            return left.matches(attributes, with: parameters) || right.matches(attributes, with: parameters)
        case .not(let filter):
            return !filter.matches(attributes, with: parameters)
        }
    }

    /// The operands, from left to right.
    package var operands: [Operand] {
        switch self {
        case .compare(let left, _, let right): [left, right]
        case .isOneOf(let operand, let list): [operand] + list
        case .and(let left, let right), .or(let left, let right): left.operands + right.operands
        case .not(let filter): filter.operands
        }
    }

    /// The names of the parameters in the filter.
    package var parameters: Set<String> {
        Set(
            operands.compactMap {
                guard case .parameter(let name) = $0 else { return nil }
                return name
            })
    }
}

extension SubscriptionFilter.Comparison {
    /// Whether the comparison is true for two values; false for different types.
    fileprivate func holds(_ left: SubscriptionValue, _ right: SubscriptionValue) -> Bool {
        guard left.type == right.type else { return false }
        switch self {
        case .equal: return left == right
        case .notEqual: return left != right
        case .less: return left.precedes(right) ?? false
        case .lessOrEqual: return right.precedes(left).map { !$0 } ?? false
        case .greater: return right.precedes(left) ?? false
        case .greaterOrEqual: return left.precedes(right).map { !$0 } ?? false
        case .startsWith:
            guard case (.text(let text), .text(let beginning)) = (left, right) else { return false }
            return text.utf8.starts(with: beginning.utf8)
        }
    }
}
