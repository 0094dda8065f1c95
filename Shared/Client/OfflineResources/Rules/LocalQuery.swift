import MobileSync

/// A query of the local copies of a collection: all tests hold, then sorted, then cut (RES9).
struct LocalQuery: Sendable, Hashable {
    let tests: [ResourceQuery]
    let orderBy: [SortKey]
    /// The number of matching items to leave out at the start.
    let offset: Int
    /// The largest number of items; nil: all.
    let limit: Int?

    /// The matching items in the requested order; without `orderBy`, in the order of the argument.
    func result(of items: [Resource]) -> [Resource] {
        let found = items.enumerated().compactMap { index, item -> (index: Int, item: Resource, json: JSONValue)? in
            guard let json = item.json, tests.allSatisfy({ $0.holds(json) }) else { return nil }
            return (index, item, json)
        }
        let sorted = found.sorted { left, right in
            for key in orderBy {
                switch ResourceComparison.order(left.json[key.property], right.json[key.property]) {
                case 0: continue
                case let order: return key.isDescending ? order > 0 : order < 0
                }
            }
            return left.index < right.index
        }
        return Array(sorted.map(\.item).dropFirst(offset).prefix(limit ?? .max))
    }
}
