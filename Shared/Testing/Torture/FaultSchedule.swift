import DeliveryHistory

/// The faults of a torture run, drawn from a seed. Each kind comes alone first, then several at a time. Every eighth
/// round has none.
struct FaultSchedule {
    /// One fault of a round.
    struct Planned: Hashable, Sendable {
        let kind: FaultKind
        /// Selects one of the processes or edges of the kind, modulo their number.
        let member: Int
        /// Since the start of the round.
        let start: Duration
        /// Time from injection to healing.
        let length: Duration
    }

    /// One in this many rounds has no fault.
    private static let quietEvery = 8

    private var random: SeededGenerator
    private let kinds: [FaultKind]
    private var alone: [FaultKind]
    private var round = 0

    /// - Parameter kinds: kinds to draw from, not empty.
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
        // The disk faults exclude each other.
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
