import Foundation

/// What the cache has of a resource.
enum CopyState: String, Sendable, Hashable, CaseIterable {
    /// Nothing, a collection that is empty, or one of which an item is missing (spec, two-way §1).
    case missing
    case fresh
    case expired

    /// - Parameters:
    ///   - fetchedAt: by the device's clock. One that lies ahead of `now` is no measure of age: the copy is expired.
    ///   - run: the start of the app in which it was fetched; they are numbered.
    ///   - isInvalid: the service has said that it changed.
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

    /// Whether a start of the app deletes such a copy.
    func isEvictedAtStartup(_ policy: EffectivePolicy, hasEdits: Bool) -> Bool {
        self == .expired && policy.evictionPolicy == .evictOnExpiryAtStartup && !hasEdits
    }
}
