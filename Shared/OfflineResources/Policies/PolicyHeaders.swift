import Foundation

/// What a response's headers say of policies: `MSS-Sync-No-Store`, `-Expires`, `-Evict` and `-Resource-Type`, and the
/// same with `Oracle-Mobile-Sync-` in front; of both, ours counts (spec, two-way §1).
struct PolicyHeaders: Sendable, Hashable {
    private static let prefixes = ["MSS-Sync-", "Oracle-Mobile-Sync-"]

    /// The strongest level.
    let policy: SyncPolicy
    /// Nil: it does not say.
    let kind: ResourceKind?

    /// - Parameter now: in place of a missing `Date`. Times are taken relative to the service's clock, so a device's
    ///   that is off does no harm. What cannot be read is ignored.
    init(_ headers: ResourceHeaders, now: Date) {
        func value(_ name: String) -> String? { Self.prefixes.lazy.compactMap { headers[$0 + name] }.first }
        func time(_ name: String) -> Duration? {
            guard let date = value(name).flatMap(HTTPDate.parse) else { return nil }
            let start = headers["Date"].flatMap(HTTPDate.parse) ?? now
            return .milliseconds(Int64(max(0, date.timeIntervalSince(start)) * 1_000))
        }
        var policy = SyncPolicy()
        if let noStore = value("No-Store") { policy.noCache = noStore.lowercased() != "false" }
        if let expires = time("Expires") { (policy.expirationPolicy, policy.expireAfter) = (.expireAfter, expires) }
        if let evict = time("Evict") {
            (policy.expirationPolicy, policy.expireAfter) = (.expireAfter, evict)
            policy.evictionPolicy = .evictOnExpiryAtStartup
        }
        self.policy = policy
        kind = value("Resource-Type").flatMap { ResourceKind(rawValue: $0.lowercased()) }
    }
}
