import MobileSync

/// The guide's Android face over `SyncClient`: the same calls in the same order (spec K10).
///
/// `setup`, `initialize`, `registerBiz`, then `appToForeground` whenever the app comes to the foreground, which connects,
/// and `appToBackground` whenever it leaves it, which disconnects at once. Calls before `initialize` do nothing.
/// All of it may be called on any thread; nothing waits for the network.
public enum MPSync {
    /// Says where the app's `meta.config` and folder are; without it `initialize` asks the platform.
    public static func setup(_ application: MPSyncApplication) { LegacyFace.shared.setUp(application) }

    /// Opens the local store, once; does not connect. When it cannot, it logs why, and can be called again.
    public static func initialize() {
        LegacyFace.shared.start(backgroundTime: .zero, startsInBackground: true)
    }

    /// The app is in the foreground: connects, and connects again whenever the connection is lost.
    public static func appToForeground() { LegacyFace.shared.setForeground(true, call: "appToForeground") }

    /// The app has left the foreground: disconnects at once.
    public static func appToBackground() { LegacyFace.shared.setForeground(false, call: "appToBackground") }

    /// Binds the user of `MPLogger.setUserId` with a session; another user is unbound first.
    ///
    /// - Parameter sessionId: what the tenant's session check is asked with; nil is `SESSION_DEMO`.
    /// - Returns: false without a user, before `initialize`, or when an id is longer than 100 UTF-16 units.
    @discardableResult public static func updateUserInfo(_ sessionId: String?) -> Bool {
        LegacyFace.shared.bind(sessionID: sessionId, call: "updateUserInfo")
    }

    /// Signs out: binds nobody. Data of the user waits until the user is bound again.
    public static func clearUserInfo() { LegacyFace.shared.unbind(call: "clearUserInfo") }

    /// Hands the data of a Sync ID to the callback, instead of an earlier one; what came before waits for it in order.
    public static func registerBiz(_ bizType: String, _ callback: any ISyncCallback) {
        _ = LegacyFace.shared.register(bizType, call: "registerBiz") { callback.onReceiveMessage($0) }
    }

    /// Ends that: data of the Sync ID waits in the local store, and burns no retries.
    public static func unregisterBiz(_ bizType: String) {
        LegacyFace.shared.unregister(bizType, call: "unregisterBiz")
    }

    /// The app has processed a message: nothing of it comes again. On the disk a moment after this returns.
    public static func reportMsgReceived(_ message: SyncMessage) {
        LegacyFace.shared.confirm(message, call: "reportMsgReceived")
    }

    /// Whether the gateway has greeted this device on a connection that is open.
    public static func isConnected() -> Bool { LegacyFace.shared.status == .connected }
}
