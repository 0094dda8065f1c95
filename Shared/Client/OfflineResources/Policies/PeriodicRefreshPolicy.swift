/// When expired copies are refreshed in the background (RES5).
public enum PeriodicRefreshPolicy: String, Sendable, Hashable, Codable, CaseIterable {
    /// Never. The default.
    case refreshNone = "REFRESH_NONE"
    /// When `ResourceClient.run()` starts and when another user is bound.
    case refreshExpiredItemOnStartup = "REFRESH_EXPIRED_ITEM_ON_STARTUP"
    /// As `refreshExpiredItemOnStartup`, and every `periodicRefreshInterval`.
    case periodicallyRefreshExpiredItems = "PERIODICALLY_REFRESH_EXPIRED_ITEMS"
}
