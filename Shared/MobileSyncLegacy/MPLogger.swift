/// Where the guide's Android apps, and iOS apps with its logging, say who is signed in.
public enum MPLogger {
    /// Notes the user for the next `MPSync.updateUserInfo` or `MPSyncInterface.bindUser`; nil when nobody is signed in.
    ///
    /// It changes nothing by itself.
    public static func setUserId(_ userId: String?) { LegacyFace.shared.setUserID(userId) }
}
