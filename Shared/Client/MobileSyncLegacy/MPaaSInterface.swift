public import Foundation

/// Supplies the signed-in user, as the guide's iOS apps do: the app overrides `userId()`.
///
/// An Objective-C app overrides it in a category, as in the guide. A Swift app overrides it in a subclass, and passes an
/// object of the subclass to `setSharedInstance`.
///
/// The library calls `userId()` on any thread, so a subclass with state must protect it.
#if canImport(ObjectiveC)
    @objcMembers
#endif
// Unchecked: this class has no state of its own.
open class MPaaSInterface: NSObject, @unchecked Sendable {
    /// Creates the object of an app that overrides nothing, or the part of a subclass.
    override public init() {}

    /// The object whose `userId()` the library calls.
    public class func sharedInstance() -> MPaaSInterface { CompatibilityCore.shared.interface }

    /// Sets the object whose `userId()` the library calls.
    public class func setSharedInstance(_ instance: MPaaSInterface) { CompatibilityCore.shared.setInterface(instance) }

    /// The signed-in user; nil or empty when no user is signed in. The value of `MPLogger.setUserId`, if it is not
    /// overridden. The library calls it when a user is bound.
    open dynamic func userId() -> String? { CompatibilityCore.shared.loggedUserID }
}
