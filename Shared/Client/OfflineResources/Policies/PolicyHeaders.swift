import Foundation
import MobileSync
import SyncModel

/// The policies in a response's headers: `MSS-Sync-No-Store`, `-Expires`, `-Evict` and `-Resource-Type`, or the same
/// names with the prefix `Oracle-Mobile-Sync-`. With both, `MSS-Sync-` counts (RES7).
struct PolicyHeaders: Sendable, Hashable {
    private static let prefixes = ["MSS-Sync-", "Oracle-Mobile-Sync-"]

    /// The policies of the headers, the strongest level of precedence.
    let policy: SyncPolicy
    /// The kind of the resource; nil when the response does not name it.
    let kind: ResourceKind?

    /// - Parameter now: used when the response has no `Date`. Dates are relative to the backend's clock, so a wrong
    ///   clock of the device has no effect. An unreadable header is ignored.
    init(_ headers: ResourceHeaders, now: Date) {
        func value(_ name: String) -> String? { Self.prefixes.lazy.compactMap { headers[$0 + name] }.first }
        func time(_ name: String) -> Duration? {
            guard let date = value(name).flatMap(Date.init(httpDate:)) else { return nil }
            let start = headers["Date"].flatMap(Date.init(httpDate:)) ?? now
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

extension Date {
    /// Parses a date of an HTTP header (RFC 9110 §5.6.7); nil for any other form.
    init?(httpDate text: String) {
        guard let time = WallTime(httpDate: text) else { return nil }
        self.init(milliseconds: time.milliseconds)
    }
}
