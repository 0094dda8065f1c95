import DeliveryHistory

/// What a torture run breaks and when, drawn from a seed: each kind alone first, then several at a time, and now and
/// then nothing.
struct FaultSchedule {
    /// One fault of a round.
    struct Planned: Hashable, Sendable {
        let kind: FaultKind
        /// Which of the processes or edges of its kind, counted round; of more there is no use.
        let member: Int
        /// Since the round's beginning.
        let start: Duration
        /// Until it is healed.
        let length: Duration
    }

    /// One in so many rounds is without a fault.
    private static let quietEvery = 8

    private var random: SeededGenerator
    private let kinds: [FaultKind]
    private var alone: [FaultKind]
    private var round = 0

    /// - Parameter kinds: what may be broken; never empty.
    init(seed: UInt64, kinds: [FaultKind]) {
        random = SeededGenerator(seed: seed)
        self.kinds = kinds
        alone = kinds.shuffled(using: &random)
    }

    /// The next round's faults, in the order of their starts.
    mutating func nextRound() -> [Planned] {
        round += 1
        if let kind = alone.popLast() { return [plan(kind, startUpTo: 200)] }
        guard !round.isMultiple(of: Self.quietEvery) else { return [] }
        var planned = (0..<Int.random(in: 3...6, using: &random)).map { _ in
            plan(kinds[Int.random(in: kinds.indices, using: &random)], startUpTo: 8_000)
        }
        // One disk cannot be full and without power at once.
        if let disk = planned.firstIndex(where: \.kind.needsDisk) {
            let kept = planned[disk]
            planned.removeAll { $0.kind.needsDisk }
            planned.append(kept)
        }
        planned.sort { $0.start < $1.start }
        return planned
    }

    private mutating func plan(_ kind: FaultKind, startUpTo milliseconds: Int) -> Planned {
        Planned(
            kind: kind, member: Int.random(in: 0..<64, using: &random),
            start: .milliseconds(Int.random(in: 0...milliseconds, using: &random)),
            length: .milliseconds(Int.random(in: kind.lengths, using: &random)))
    }
}
