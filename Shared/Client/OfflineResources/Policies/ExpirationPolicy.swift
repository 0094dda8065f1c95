/// When a local copy is marked as expired (RES3).
public enum ExpirationPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// At the next start of the app. The default.
    case expireOnRestart = "EXPIRE_ON_RESTART"
    /// `expireAfter` after the fetch.
    case expireAfter = "EXPIRE_AFTER"
    /// Only when a push says so.
    case neverExpire = "NEVER_EXPIRE"
}
