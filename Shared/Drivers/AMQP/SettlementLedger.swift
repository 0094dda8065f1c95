/// Unacknowledged deliveries of one connection, in the order of their arrival; pure.
///
/// Deliveries that are accepted together need few frames, because one frame can acknowledge all tags up to its own
/// (AMQP 0-9-1, basic.ack, field multiple).
struct SettlementLedger {
    /// A frame for the broker.
    struct Frame: Equatable {
        let tag: UInt64
        let settlement: AMQPSettlement
        /// Includes all earlier tags; only for `accepted`.
        var isMultiple = false
    }

    private var open: [UInt64] = []

    /// Whether no delivery waits.
    var isEmpty: Bool { open.isEmpty }

    /// Records a delivery; the tags of a channel rise.
    mutating func recordDelivery(_ tag: UInt64) { open.append(tag) }

    /// Removes acknowledged deliveries and returns the frames for them. Unknown and repeated tags are ignored.
    mutating func acknowledge(_ settlements: [(tag: UInt64, settlement: AMQPSettlement)]) -> [Frame] {
        var outcomes = Dictionary(settlements.map { ($0.tag, $0.settlement) }) { first, _ in first }
        var frames: [Frame] = []
        // The oldest deliveries, as far as all of them are accepted.
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
