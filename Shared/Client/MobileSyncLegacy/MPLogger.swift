public import Foundation

/// Receives the signed-in user from apps that use the vendor's logging API.
#if canImport(ObjectiveC)
    @objcMembers
#endif
public final class MPLogger: NSObject {
    /// All methods are class methods, so no object is created.
    override private init() {}

    /// Sets the user for the next `MPSync.updateUserInfo` or `MPSyncInterface.bindUser`; nil when no user is signed in.
    ///
    /// The call itself binds nothing.
    public class func setUserId(_ userId: String?) { CompatibilityCore.shared.setUserID(userId) }
}
