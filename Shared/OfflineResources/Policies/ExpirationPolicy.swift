/// When a local copy counts as expired, which only marks it (spec, two-way §1).
public enum ExpirationPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// When the app is started again. The default.
    case expireOnRestart = "EXPIRE_ON_RESTART"
    /// After `expireAfter`, counted from the fetch.
    case expireAfter = "EXPIRE_AFTER"
    /// Only when a push says so.
    case neverExpire = "NEVER_EXPIRE"
}
