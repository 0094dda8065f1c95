package import SyncModel

/// The validity that the store gave a push, beside the validity that the caller asked for.
package enum StoredValidity: Hashable, Sendable {
    /// What the caller asked for, or the instance's own when the caller asked for none.
    case asAsked
    /// The caller asked for more than the instance keeps: the push is valid until this time.
    case capped(WallTime)
    /// The end lies in the past by the store's clock: no device gets the push.
    case over

    /// Clocks differ: a caller that asks for the whole of what the instance keeps is not told of seconds.
    private static let slack = Duration.seconds(60)

    /// Compares what was asked for with what the store answered.
    ///
    /// - Parameters:
    ///   - asked: nil: nothing was asked for.
    ///   - validUntil: the end that is in force.
    ///   - storedAt: the store's time.
    package init(asked: WallTime?, validUntil: WallTime, storedAt: WallTime) {
        if validUntil <= storedAt {
            self = .over
        } else if let asked, validUntil + Self.slack < asked {
            self = .capped(validUntil)
        } else {
            self = .asAsked
        }
    }

    /// The sentence for the caller; nil when there is nothing to say.
    package var detail: String? {
        switch self {
        case .asAsked: nil
        case .capped(let end):
            "validTimeEnd is later than this instance keeps data; the push is valid until \(end.milliseconds)"
                + " (\(end.text))."
        case .over: "validTimeEnd lies in the past, so no device will receive the push."
        }
    }
}
