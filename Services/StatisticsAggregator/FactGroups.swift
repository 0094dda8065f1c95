import BusMessages

/// Cuts the consumed bodies into groups that are folded and acknowledged together; pure.
enum FactGroups {
    /// The largest number of rows in one group, unless a single body has more: a body is acknowledged as a whole. The
    /// facts of some thousand pushes per second that arrive during one gathering fit, because an oplog whose facts are
    /// in two groups is written twice.
    static let rowsMax = 24_000

    /// The number of rows that a body of facts changes: the ids in it.
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

    /// Groups of consecutive elements, in order. The sizes of a group add up to at most `rowsMax`, and every element is
    /// in one group.
    static func cut<Element>(_ elements: [Element], size: (Element) -> Int) -> [[Element]] {
        var groups: [[Element]] = []
        var capacity = 0
        for element in elements {
            let size = size(element)
            if groups.isEmpty || size > capacity {
                groups.append([])
                capacity = rowsMax
            }
            groups[groups.count - 1].append(element)
            capacity -= size
        }
        return groups
    }
}
