import BusMessages

/// Cuts what was taken off the queue into what is merged and settled together; pure.
enum FactGroups {
    /// Rows of one group at the most, unless one body alone has more: bodies are settled whole. What some thousand
    /// pushes a second bring while facts are gathered fits: an oplog whose facts are in two groups is written twice.
    static let rowsMax = 24_000

    /// How many rows a body of facts touches: the ids it names.
    static func rows(of facts: [Mss_Bus_V1_Fact]) -> Int {
        facts.reduce(0) { rows, fact in
            switch fact.body {
            case .handedOut(let handedOut): rows + handedOut.oplogIds.count
            case .confirmed(let confirmed): rows + confirmed.oplogIds.count
            case .skipped(let skipped): rows + skipped.oplogIds.count
            case .resent, .discarded, .connected, nil: rows + 1
            }
        }
    }

    /// Consecutive elements whose sizes add up to `rowsMax` at the most, in order; every element is in one group.
    static func cut<Element>(_ elements: [Element], size: (Element) -> Int) -> [[Element]] {
        var groups: [[Element]] = []
        var room = 0
        for element in elements {
            let size = size(element)
            if groups.isEmpty || size > room {
                groups.append([])
                room = rowsMax
            }
            groups[groups.count - 1].append(element)
            room -= size
        }
        return groups
    }
}
