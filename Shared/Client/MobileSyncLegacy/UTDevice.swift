public import Foundation

/// The device id of the guide (K5).
#if canImport(ObjectiveC)
    @objcMembers
#endif
public final class UTDevice: NSObject {
    /// All methods are class methods, so no object is created.
    override private init() {}

    /// Returns the device's id, to which backends push device data, also before the client is started. The first call
    /// makes the id and stores it. It is the same across launches, and on iOS across re-installations.
    ///
    /// - Returns: nil when the application's settings or files cannot be used; the reason is logged.
    public class func getUtdid() -> String? { CompatibilityCore.shared.loadDeviceID() }
}
