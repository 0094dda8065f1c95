/// Receives the signed-in user from apps that use the vendor's logging API.
public enum MPLogger {
    /// Sets the user for the next `MPSync.updateUserInfo` or `MPSyncInterface.bindUser`; nil when no user is signed in.
    ///
    /// The call itself binds nothing.
    public static func setUserId(_ userId: String?) { LegacyFace.shared.setUserID(userId) }
}
