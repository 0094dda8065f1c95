import Foundation

@testable import LocalEntities

/// Evaluates a query row by row in memory, without any code of the compiler to SQL.
struct NaiveQuery {
    /// All rows by type, in the order of the store.
    let rows: [String: [Entity]]
    /// The keys of the incidents with log records.
    let logged: Set<AttributeValue>

    /// A row of the query's type together with those of its joins.
    private typealias Match = [String: Entity]

    /// Keys of the rows that `findWithQuery` must return.
    func keys(_ query: EntityQuery) -> [AttributeValue] {
        let all = rows[query.typeName] ?? []
        let found = all.filter { row in
            guard query.includesDeleted || !row.isDeleted else { return false }
            return matches(query, row).contains { match in
                query.condition.map { truth($0, match) == true } ?? true
            }
        }
        let sorted = found.enumerated().sorted { left, right in
            for sort in query.sorts {
                let order = compare(left.element.value(sort), right.element.value(sort), nullsFirst: true)
                if order != 0 { return sort.isDescending ? order > 0 : order < 0 }
            }
            return left.offset < right.offset
        }
        let page = sorted.dropFirst(query.skip).prefix(query.take ?? .max)
        return page.map(\.element.key)
    }

    private func matches(_ query: EntityQuery, _ row: Entity) -> [Match] {
        var matches: [Match] = [["": row]]
        for join in query.joins {
            matches = matches.flatMap { match -> [Match] in
                guard let base = match[join.base ?? ""] else { return [] }
                return related(base, join.relationship).map { other in match.merging([join.alias: other]) { $1 } }
            }
        }
        return matches
    }

    private func related(_ row: Entity, _ name: String) -> [Entity] {
        let visible = { (type: String) in (self.rows[type] ?? []).filter { !$0.isDeleted } }
        if let down = row.type.relationships.first(where: { $0.name == name }) {
            return visible(down.childType).filter { $0.fields[down.foreignKey] == row.key }
        }
        for parent in [Sample.incident, Sample.note] {
            for up in parent.relationships where up.inverseName == name && up.childType == row.type.name {
                return visible(parent.name).filter { $0.key == row.fields[up.foreignKey] }
            }
        }
        return []
    }

    // MARK: Truth, which may be unknown

    private func truth(_ condition: EntityCondition, _ match: Match) -> Bool? {
        switch condition {
        case .test(let test): return truth(test, match)
        case .not(let part): return truth(part, match).map { !$0 }
        case .and(let parts):
            let truths = parts.map { truth($0, match) }
            return truths.contains(false) ? false : truths.contains(nil) ? nil : true
        case .or(let parts):
            let truths = parts.map { truth($0, match) }
            return truths.contains(true) ? true : truths.contains(nil) ? nil : false
        }
    }

    private func value(_ name: String, _ match: Match) -> AttributeValue {
        let parts = name.split(separator: ".").map(String.init)
        let row = parts.count == 2 ? match[parts[0]] : match[""]
        if parts.last == "hasLogRecords" {
            return .boolean(row?.type.name == "Incident" && logged.contains(row?.key ?? .null))
        }
        return row?.value(EntityQuery.SortOrder(attribute: parts.last ?? "", isDescending: false)) ?? .null
    }

    private func truth(_ test: AttributeTest, _ match: Match) -> Bool? {
        let left = value(test.attribute, match)
        if test.comparison == .isNull { return left == .null }
        if test.comparison == .notNull { return left != .null }
        guard left != .null else { return nil }
        switch test.operand {
        case .values(let values):
            let isIn = values.contains { compare(left, $0, nullsFirst: true) == 0 }
            return test.comparison == .isIn ? isIn : !isIn
        case .value(let right): return truth(left, test.comparison, right)
        case .attribute(let name):
            let right = value(name, match)
            return right == .null ? nil : truth(left, test.comparison, right)
        case .nothing: return nil
        }
    }

    private func truth(_ left: AttributeValue, _ comparison: AttributeTest.Comparison, _ right: AttributeValue) -> Bool?
    {
        let order = compare(left, right, nullsFirst: true)
        let (text, other) = (Array((left.asText ?? "").unicodeScalars), Array((right.asText ?? "").unicodeScalars))
        switch comparison {
        case .equal: return order == 0
        case .notEqual: return order != 0
        case .lessThan: return order < 0
        case .lessEqual: return order <= 0
        case .greaterThan: return order > 0
        case .greaterEqual: return order >= 0
        case .like: return like(text[...], other[...])
        case .notLike: return !like(text[...], other[...])
        case .match: return glob(text[...], other[...])
        case .notMatch: return !glob(text[...], other[...])
        case .contains: return holds(text, other)
        case .notContain: return !holds(text, other)
        case .startsWith: return text.starts(with: other)
        case .notStartWith: return !text.starts(with: other)
        case .endsWith: return text.reversed().starts(with: other.reversed())
        case .notEndWith: return !text.reversed().starts(with: other.reversed())
        case .isNull, .notNull, .isIn, .notIn: return nil
        }
    }

    private func compare(_ left: AttributeValue, _ right: AttributeValue, nullsFirst: Bool) -> Int {
        func order<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
            left < right ? -1 : left == right ? 0 : 1
        }
        switch (left, right) {
        case (.null, .null): return 0
        case (.null, _): return -1
        case (_, .null): return 1
        case (.text(let a), .text(let b)):
            if a.utf8.elementsEqual(b.utf8) { return 0 }
            return a.utf8.lexicographicallyPrecedes(b.utf8) ? -1 : 1
        case (.bytes(let a), .bytes(let b)): return a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
        case (.boolean(let a), .boolean(let b)): return order(a ? 1 : 0, b ? 1 : 0)
        case (.date(let a), .date(let b)): return order(a, b)
        case (.decimal(let a), .decimal(let b)): return order(a, b)
        case (.integer(let a), .integer(let b)): return order(a, b)
        default:
            let a = left.asDouble ?? Double(left.asInteger ?? 0)
            return order(a, right.asDouble ?? Double(right.asInteger ?? 0))
        }
    }

    private func holds(_ text: [Unicode.Scalar], _ part: [Unicode.Scalar]) -> Bool {
        (0...text.count).contains { text.dropFirst($0).starts(with: part) }
    }

    private func like(_ text: ArraySlice<Unicode.Scalar>, _ pattern: ArraySlice<Unicode.Scalar>) -> Bool {
        func lower(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
            ("A"..."Z").contains(scalar) ? Unicode.Scalar(scalar.value + 32) ?? scalar : scalar
        }
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch first {
        case "%": return (0...text.count).contains { like(text.dropFirst($0), rest) }
        case "_": return !text.isEmpty && like(text.dropFirst(), rest)
        case "\\":
            guard let meant = rest.first, let found = text.first else { return false }
            return lower(meant) == lower(found) && like(text.dropFirst(), rest.dropFirst())
        default:
            guard let found = text.first else { return false }
            return lower(first) == lower(found) && like(text.dropFirst(), rest)
        }
    }

    private func glob(_ text: ArraySlice<Unicode.Scalar>, _ pattern: ArraySlice<Unicode.Scalar>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch first {
        case "*": return (0...text.count).contains { glob(text.dropFirst($0), rest) }
        case "?": return !text.isEmpty && glob(text.dropFirst(), rest)
        default: return text.first == first && glob(text.dropFirst(), rest)
        }
    }
}

extension Entity {
    /// An attribute, or a part of the state, by its name in queries.
    fileprivate func value(_ sort: EntityQuery.SortOrder) -> AttributeValue {
        switch sort.attribute {
        case "pending": .boolean(isPending)
        case "pendingChange": .text(pendingChange.rawValue)
        case "isCreated": .boolean(isCreated)
        case "isUpdated": .boolean(isUpdated)
        case "isDeleted": .boolean(isDeleted)
        case "replayCounter": .integer(state.replayCounter)
        case "replayPending": .integer(state.replayPending)
        case "replayFailure": .integer(state.replayFailure)
        default: fields[sort.attribute] ?? .null
        }
    }
}
