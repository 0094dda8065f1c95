/// When a local copy is deleted (RES3).
public enum EvictionPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// At the start of the app, when the copy is expired and has no offline edits. The default of files.
    case evictOnExpiryAtStartup = "EVICT_ON_EXPIRY_AT_STARTUP"
    /// Only by `ResourceClient.evict`. The default.
    case manualEviction = "MANUAL_EVICTION"
}
