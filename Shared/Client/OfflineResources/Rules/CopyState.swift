import Foundation

/// The state of a resource in the cache.
enum CopyState: String, Sendable, Hashable, CaseIterable {
    /// No copy, or a collection that lacks an item (RES2).
    case missing
    case fresh
    case expired

    /// - Parameters:
    ///   - fetchedAt: the fetch by the device's clock. A time after `now` makes the copy expired.
    ///   - run: the number of the app's start in which the copy was fetched.
    ///   - isInvalid: the backend has said that the resource changed.
    /// - Returns: `fresh` or `expired`.
    static func of(
        _ policy: EffectivePolicy, fetchedAt: Date, run: Int64, isInvalid: Bool, now: Date, currentRun: Int64
    ) -> CopyState {
        if isInvalid { return .expired }
        switch policy.expirationPolicy {
        case .neverExpire: return .fresh
        case .expireOnRestart: return run == currentRun ? .fresh : .expired
        case .expireAfter:
            let age = now.timeIntervalSince(fetchedAt)
            let limit = policy.expireAfter / .seconds(1)
            return age >= 0 && age < limit ? .fresh : .expired
        }
    }

    /// Whether the start of the app deletes such a copy.
    func isEvictedAtStartup(_ policy: EffectivePolicy, hasEdits: Bool) -> Bool {
        self == .expired && policy.evictionPolicy == .evictOnExpiryAtStartup && !hasEdits
    }
}
