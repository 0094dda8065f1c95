/// Where the guide's iOS apps say who is signed in.
///
/// There an app overrides `userId` of this class in a category, which Swift has not; it sets a provider instead.
public enum MPaaSInterface {
    /// Who answers `userId()` from now on; nil for nobody.
    public static func setUserIdProvider(_ provider: (@Sendable () -> String?)?) {
        LegacyFace.shared.setUserIDProvider(provider)
    }

    /// The signed-in user: the provider's, or else what `MPLogger.setUserId` was told; nil when both have none.
    public static func userId() -> String? { LegacyFace.shared.userID }
}
