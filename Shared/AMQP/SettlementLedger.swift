/// Deliveries of one connection that wait for their settlement, in the order in which they came; pure.
///
/// What is accepted together leaves in as few frames as can be: one settles everything up to its tag (AMQP 0-9-1,
/// basic.ack, field multiple).
struct SettlementLedger {
    /// What to tell the broker.
    struct Frame: Equatable {
        let tag: UInt64
        let settlement: AMQPSettlement
        /// Also everything before this tag; only where it is accepted.
        var isMultiple = false
    }

    private var open: [UInt64] = []

    /// Nothing waits.
    var isEmpty: Bool { open.isEmpty }

    /// Books a delivery; tags of a channel rise.
    mutating func delivered(_ tag: UInt64) { open.append(tag) }

    /// Takes settlements and gives the frames for them; a tag that does not wait, or is named again, settles nothing.
    mutating func settle(_ settlements: [(tag: UInt64, settlement: AMQPSettlement)]) -> [Frame] {
        var outcomes = Dictionary(settlements.map { ($0.tag, $0.settlement) }) { first, _ in first }
        var frames: [Frame] = []
        // The first that wait, as long as all of them are accepted.
        let prefix = open.prefix { outcomes[$0] == .accepted }
        if let last = prefix.last {
            frames.append(Frame(tag: last, settlement: .accepted, isMultiple: prefix.count > 1))
            for tag in prefix { outcomes[tag] = nil }
            open.removeFirst(prefix.count)
        }
        if outcomes.isEmpty { return frames }
        open.removeAll { tag in
            guard let settlement = outcomes[tag] else { return false }
            frames.append(Frame(tag: tag, settlement: settlement))
            return true
        }
        return frames
    }
}
