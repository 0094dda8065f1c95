public import MobileSync

/// The guide's Android API on top of `SyncClient`: the same calls in the same order (K10).
///
/// Call `setup`, `initialize` and `registerBiz`. Then call `appToForeground` whenever the app enters the foreground,
/// which connects, and `appToBackground` whenever it leaves the foreground, which disconnects at once. Calls before
/// `initialize` have no effect. All methods can be called on any thread and do not wait for the network.
public enum MPSync {
    /// Sets the app's `meta.config` and folder. Without this call `initialize` uses the platform's locations.
    public static func setup(_ application: MPSyncApplication) { CompatibilityCore.shared.setUp(application) }

    /// Opens the local store once, without a connection. A failure is logged, and the app can call again.
    public static func initialize() {
        CompatibilityCore.shared.start(backgroundTime: .zero, startsInBackground: true, followsSystem: false)
    }

    /// Reports that the app is in the foreground. The client connects, and connects again after every lost connection.
    public static func appToForeground() { CompatibilityCore.shared.setForeground(true, call: "appToForeground") }

    /// Reports that the app has left the foreground. The client disconnects at once.
    public static func appToBackground() { CompatibilityCore.shared.setForeground(false, call: "appToBackground") }

    /// Binds the user of `MPLogger.setUserId` with a session. Another bound user is unbound first.
    ///
    /// - Parameter sessionId: the user session that the tenant checks; nil means `SESSION_DEMO`.
    /// - Returns: false before `initialize`, without a user id, or when an id is invalid: the user id has more than 100
    ///   UTF-16 units, or the session id has more than 4,096.
    @discardableResult public static func updateUserInfo(_ sessionId: String?) -> Bool {
        CompatibilityCore.shared.bind(sessionID: sessionId, call: "updateUserInfo")
    }

    /// Signs the user out. The user's data waits until the user is bound again.
    public static func clearUserInfo() { CompatibilityCore.shared.unbind(call: "clearUserInfo") }

    /// The device's id, to which backends push device data. It is the same across launches; nil before `initialize`.
    public static func getDeviceId() -> String? { CompatibilityCore.shared.deviceID }

    /// The client below both compatibility APIs, for calls that the guide does not have; nil before the start.
    public static var client: SyncClient? { CompatibilityCore.shared.client }

    /// Sets the callback for the data of a Sync ID, and replaces an earlier one. Waiting data follows in order. A call
    /// before `initialize`, or with an invalid Sync ID, has no effect.
    public static func registerBiz(_ bizType: String, _ callback: any ISyncCallback) {
        _ = CompatibilityCore.shared.register(bizType, call: "registerBiz") { callback.onReceiveMessage($0) }
    }

    /// Removes the callback of a Sync ID. Its data waits in the local store, and its resend ladder stops.
    public static func unregisterBiz(_ bizType: String) {
        CompatibilityCore.shared.unregister(bizType, call: "unregisterBiz")
    }

    /// Confirms that the app has processed a message. Its data does not arrive again. The confirmation is on the disk
    /// shortly after the call returns.
    public static func reportMsgReceived(_ message: SyncMessage) {
        CompatibilityCore.shared.confirm(message, call: "reportMsgReceived")
    }

    /// Whether the gateway has accepted this device on a connection that is open.
    public static func isConnected() -> Bool { CompatibilityCore.shared.status == .connected }
}
