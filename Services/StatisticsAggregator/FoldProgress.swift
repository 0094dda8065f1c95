import SyncModel

/// Up to which moment everything that was accepted and told is in the figures, as far as one aggregator can know; pure.
struct FoldProgress {
    /// How far facts are folded. It may fall, because late facts can still come.
    private var told: WallTime?
    /// How far stored pushes are counted.
    private var accepted: WallTime?
    private var wasIdle = false

    /// It is nil until both are known.
    var upto: WallTime? {
        guard let told, let accepted else { return nil }
        return min(told, accepted)
    }

    /// A batch of facts is in the figures.
    ///
    /// - Parameter newest: of its facts; nil: none that says.
    mutating func folded(newest: WallTime?) {
        wasIdle = false
        if let newest { told = newest }
    }

    /// Stored pushes are in the figures.
    ///
    /// - Parameter time: when the reading began, if it found all of them; otherwise when the newest that it found was
    ///   accepted.
    mutating func read(upto time: WallTime) { accepted = time }

    /// Looks, every few seconds: when nothing waits, everything told before is folded. Once is not enough, as a broker
    /// that has just come back may not have sent what waits there.
    ///
    /// - Parameter isIdle: the broker is there, and it has sent nothing that is not folded.
    mutating func looked(isIdle: Bool, at now: WallTime) {
        if isIdle, wasIdle { told = now }
        wasIdle = isIdle
    }

    /// How far figures are behind, in seconds; nil until that is known.
    func lag(at now: WallTime) -> Double? {
        upto.map { Double(max(0, now.milliseconds - $0.milliseconds)) / 1_000 }
    }
}
