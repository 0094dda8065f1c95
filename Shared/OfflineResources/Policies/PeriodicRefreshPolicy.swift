/// When expired copies are fetched again without being asked for (spec, two-way §1).
public enum PeriodicRefreshPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Never. The default.
    case refreshNone = "REFRESH_NONE"
    /// When `ResourceClient.run()` starts, or another user is bound.
    case refreshExpiredItemOnStartup = "REFRESH_EXPIRED_ITEM_ON_STARTUP"
    /// Then, and every `periodicRefreshInterval`.
    case periodicallyRefreshExpiredItems = "PERIODICALLY_REFRESH_EXPIRED_ITEMS"
}
