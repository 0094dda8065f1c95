/// Supplies the signed-in user, as the guide's iOS apps do.
///
/// The guide overrides `userId` of this class in a category. Swift has no categories, so an app sets a provider
/// instead.
public enum MPaaSInterface {
    /// Sets the function that returns the signed-in user; nil removes it. The library calls it in `userId()` and when a
    /// user is bound.
    public static func setUserIdProvider(_ provider: (@Sendable () -> String?)?) {
        LegacyFace.shared.setUserIDProvider(provider)
    }

    /// The signed-in user: the value of the provider, or else of `MPLogger.setUserId`; nil when both have none.
    public static func userId() -> String? { LegacyFace.shared.userID }
}
