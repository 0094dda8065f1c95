public import Foundation

/// The guide's iOS API on top of `SyncClient`: the same class methods, with the same selectors on Apple's systems
/// (K10).
///
/// Data arrives as notifications of the default notification centre. A notification has the name of the Sync ID, and
/// its `userInfo["op"]` is the guide's JSON text (`SyncMessage.msgData`). The library posts one notification after
/// another for each Sync ID, on its own thread. Calls before `initSync` have no effect and return false.
///
/// Systems without Objective-C have no selectors. There an observer registers a method of its class:
/// `registerSyncBiz(withName: "UCHAT", syncObserver: self, selector: Chat.receive)`.
#if canImport(ObjectiveC)
    @objcMembers
#endif
public final class MPSyncInterface: NSObject {
    /// The longest time for which iOS keeps an app connected in the background (K1).
    static let backgroundTime = Duration.seconds(180)

    /// All methods are class methods, so no object is created.
    override private init() {}

    // MARK: Connection

    /// Connects and follows the app's life cycle, with the platform's `meta.config` and folder. Later calls have no
    /// effect.
    ///
    /// A failure is logged, and the app can call again. On systems without UIKit the client stays in the foreground.
    public class func initSync() {
        CompatibilityCore.shared.start(backgroundTime: backgroundTime, startsInBackground: false, followsSystem: true)
    }

    /// Connects as `initSync()`, with a `meta.config` and a folder that the app chooses.
    public class func initSync(with application: MPSyncApplication) {
        CompatibilityCore.shared.setUp(application)
        initSync()
    }

    /// The status of the connection. It is `connected` only after the gateway has accepted the device.
    public class func connectStatus() -> MPSyncNetConnectType { MPSyncNetConnectType(CompatibilityCore.shared.status) }

    /// The device's id, to which backends push device data. It is the same across launches; nil before `initSync`.
    public class func getSyncDeviceId() -> String? { CompatibilityCore.shared.deviceID }

    // MARK: User

    /// Binds the user of `MPaaSInterface` or `MPLogger` with a session. Another bound user is unbound first.
    ///
    /// - Parameter sessionId: the user session that the tenant checks; nil means `SESSION_DEMO`.
    /// - Returns: false before `initSync`, without a user id, or when an id is invalid: the user id has more than 100
    ///   UTF-16 units, or the session id has more than 4,096.
    @discardableResult public class func bindUser(withSessionId sessionId: String?) -> Bool {
        CompatibilityCore.shared.bind(sessionID: sessionId, call: "bindUserWithSessionId:")
    }

    /// Signs the user out. The user's data waits until the user is bound again.
    public class func unBindUser() { CompatibilityCore.shared.unbind(call: "unBindUser") }

    // MARK: Data

    #if canImport(ObjectiveC)
        /// Calls the observer's selector with each notification of the Sync ID. Not tested: the tests run on Linux.
        ///
        /// - Returns: false before `initSync`, or when the Sync ID is invalid.
        @discardableResult public class func registerSyncBiz(
            withName bizName: String, syncObserver observer: AnyObject, selector: Selector
        ) -> Bool {
            let identifier = ObjectIdentifier(observer)
            // An observer registers and removes itself; the notification centre only compares the reference.
            nonisolated(unsafe) weak let reference = observer
            return register(bizName, identifier) {
                NotificationCenter.default.addObserver(
                    observer, selector: selector, name: Notification.Name(bizName), object: nil)
                return {
                    guard let reference else { return }
                    NotificationCenter.default.removeObserver(
                        reference, name: Notification.Name(bizName), object: nil)
                }
            }
        }
    #endif

    /// Calls a method of the observer with each notification of the Sync ID. The library keeps only a weak reference to
    /// the observer.
    ///
    /// - Parameters:
    ///   - bizName: the Sync ID.
    ///   - observer: the object that receives the notifications.
    ///   - selector: the method, named with its class, as in `Chat.receive`.
    /// - Returns: false before `initSync`, or when the Sync ID is invalid.
    @discardableResult public class func registerSyncBiz<Observer: AnyObject & Sendable>(
        withName bizName: String, syncObserver observer: Observer,
        selector: @escaping @Sendable (Observer) -> (Notification) -> Void
    ) -> Bool {
        register(bizName, ObjectIdentifier(observer)) {
            let block: @Sendable (Notification) -> Void = { [weak observer] notification in
                if let observer { selector(observer)(notification) }
            }
            // The token is only passed back to the notification centre, which is thread-safe.
            nonisolated(unsafe) let token = NotificationCenter.default.addObserver(
                forName: Notification.Name(bizName), object: nil, queue: nil, using: block)
            return { NotificationCenter.default.removeObserver(token) }
        }
    }

    /// - Parameter listen: adds the observer, and returns the closure that removes it.
    private class func register(
        _ bizName: String, _ observer: ObjectIdentifier, listen: () -> @Sendable () -> Void
    ) -> Bool {
        let client = CompatibilityCore.shared
        let call = "registerSyncBizWithName:syncObserver:selector:"
        guard client.canRegister(bizName, call: call) else { return false }
        // An earlier registration of this observer ends first. Otherwise the centre would call the observer twice, or
        // remove both registrations.
        _ = client.observers.remove(observer, of: bizName)
        client.observers.insert(observer, of: bizName, removal: listen())
        return client.register(bizName, call: call) { message in
            NotificationCenter.default.post(
                name: Notification.Name(bizName), object: nil, userInfo: message.userInfo)
        }
    }

    /// Removes an observer of a Sync ID. Without an observer the data waits in the local store.
    ///
    /// - Returns: whether the observer was registered.
    @discardableResult public class func unRegisterSyncBiz(
        withName bizName: String, syncObserver observer: AnyObject
    ) -> Bool {
        unregister(bizName, ObjectIdentifier(observer), call: "unRegisterSyncBizWithName:syncObserver:")
    }

    /// The guide's other spelling of `unRegisterSyncBiz`.
    @discardableResult public class func unregisterSyncBiz(
        withName bizName: String, syncObserver observer: AnyObject
    ) -> Bool { unRegisterSyncBiz(withName: bizName, syncObserver: observer) }

    /// Removes an observer of all Sync IDs. Call it before the observer is deallocated.
    public class func removeSyncNotificationObserver(_ observer: AnyObject) {
        for bizName in CompatibilityCore.shared.observers.bizTypes(of: ObjectIdentifier(observer)) {
            _ = unregister(bizName, ObjectIdentifier(observer), call: "removeSyncNotificationObserver:")
        }
    }

    private class func unregister(_ bizName: String, _ observer: ObjectIdentifier, call: String) -> Bool {
        guard CompatibilityCore.shared.started(call) != nil else { return false }
        let (wasThere, isLast) = CompatibilityCore.shared.observers.remove(observer, of: bizName)
        if wasThere, isLast { CompatibilityCore.shared.unregister(bizName, call: call) }
        return wasThere
    }

    /// Confirms that the app has processed the data of a notification. The data does not arrive again. The confirmation
    /// is on the disk shortly after the call returns.
    ///
    /// - Parameter userInfo: the `userInfo` of the notification. Other contents are ignored.
    public class func responseMessageNotify(_ userInfo: [AnyHashable: Any]) {
        guard let message = SyncMessage(userInfo: userInfo) else { return }
        CompatibilityCore.shared.confirm(message, call: "responseMessageNotify:")
    }
}
