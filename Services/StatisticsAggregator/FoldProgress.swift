import SyncModel

/// Up to which moment everything that was told is in the figures, as far as one aggregator can know; pure.
struct FoldProgress {
    /// Nil until something is known. It may fall: facts that were late have come.
    private(set) var upto: WallTime?
    private var wasIdle = false

    /// A batch is in the figures.
    ///
    /// - Parameter newest: of its facts; nil: none that says.
    mutating func folded(newest: WallTime?) {
        wasIdle = false
        if let newest { upto = newest }
    }

    /// Looks, every few seconds: when nothing waits, everything told before is folded. Once is not enough, as a broker
    /// that has just come back may not have sent what waits there.
    ///
    /// - Parameter isIdle: the broker is there, and it has sent nothing that is not folded.
    mutating func looked(isIdle: Bool, at now: WallTime) {
        if isIdle, wasIdle { upto = now }
        wasIdle = isIdle
    }

    /// How far figures are behind, in seconds; nil until that is known.
    func lag(at now: WallTime) -> Double? {
        upto.map { Double(max(0, now.milliseconds - $0.milliseconds)) / 1_000 }
    }
}
