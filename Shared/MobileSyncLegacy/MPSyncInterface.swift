public import Foundation

/// The guide's iOS face over `SyncClient`: the same class methods, by the same selectors on Apple's systems (spec K10).
///
/// Data comes as a notification of the default centre, named after the Sync ID, whose `userInfo["op"]` is the guide's
/// JSON text (`SyncMessage.msgData`). It is posted on a thread of the library's, one after the other for each Sync ID.
/// Calls before `initSync` do nothing and return false.
///
/// Elsewhere there are no selectors: an observer is registered with a method of its class instead,
/// `registerSyncBiz(withName: "UCHAT", syncObserver: self, selector: Chat.receive)`.
#if canImport(ObjectiveC)
    @objcMembers
#endif
public final class MPSyncInterface: NSObject {
    /// How long iOS lets an app stay connected in the background, at the most (spec K1).
    static let backgroundTime = Duration.seconds(180)

    /// Not to be made: all methods are the class's.
    override private init() {}

    // MARK: Connection

    /// Connects, once, and follows the app's life cycle, with the platform's `meta.config` and folder.
    ///
    /// When it cannot, it logs why, and can be called again. Without UIKit there is no life cycle to follow.
    public class func initSync() {
        LegacyFace.shared.start(backgroundTime: backgroundTime, startsInBackground: false)
        #if canImport(UIKit) && !os(watchOS)
            AppLifeCycle.follow()
        #endif
    }

    /// The same with a `meta.config` and folder of the app's choice.
    public class func initSync(with application: MPSyncApplication) {
        LegacyFace.shared.setUp(application)
        initSync()
    }

    /// Where the connection is; connected only after the gateway's greeting.
    public class func connectStatus() -> MPSyncNetConnectType { MPSyncNetConnectType(LegacyFace.shared.status) }

    /// This device's id, which device data is pushed to; stable across launches. Nil before `initSync`.
    public class func getSyncDeviceId() -> String? { LegacyFace.shared.deviceID }

    // MARK: User

    /// Binds the user of `MPaaSInterface` or `MPLogger` with a session; another user is unbound first.
    ///
    /// - Parameter sessionId: what the tenant's session check is asked with; nil is `SESSION_DEMO`.
    /// - Returns: false without a user, before `initSync`, or when an id is longer than 100 UTF-16 units.
    @discardableResult public class func bindUser(withSessionId sessionId: String?) -> Bool {
        LegacyFace.shared.bind(sessionID: sessionId, call: "bindUserWithSessionId:")
    }

    /// Signs out: binds nobody. Data of the user waits until the user is bound again.
    public class func unBindUser() { LegacyFace.shared.unbind(call: "unBindUser") }

    // MARK: Data

    #if canImport(ObjectiveC)
        /// Calls the observer's selector with each notification of the Sync ID; not run here.
        ///
        /// - Returns: false before `initSync`, or when no Sync ID can have this name.
        @discardableResult public class func registerSyncBiz(
            withName bizName: String, syncObserver observer: AnyObject, selector: Selector
        ) -> Bool {
            let identifier = ObjectIdentifier(observer)
            // An observer registers and unregisters itself; the centre only compares the reference.
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

    /// Calls a method of the observer with each notification of the Sync ID; the observer is not kept alive.
    ///
    /// - Parameter selector: the method by its class, as in `Chat.receive`.
    /// - Returns: false before `initSync`, or when no Sync ID can have this name.
    @discardableResult public class func registerSyncBiz<Observer: AnyObject & Sendable>(
        withName bizName: String, syncObserver observer: Observer,
        selector: @escaping @Sendable (Observer) -> (Notification) -> Void
    ) -> Bool {
        register(bizName, ObjectIdentifier(observer)) {
            let block: @Sendable (Notification) -> Void = { [weak observer] notification in
                if let observer { selector(observer)(notification) }
            }
            // The centre's token is only given back to the centre, which is thread-safe.
            nonisolated(unsafe) let token = NotificationCenter.default.addObserver(
                forName: Notification.Name(bizName), object: nil, queue: nil, using: block)
            return { NotificationCenter.default.removeObserver(token) }
        }
    }

    /// - Parameter listen: makes the observer listen and returns how to end that.
    private class func register(
        _ bizName: String, _ observer: ObjectIdentifier, listen: () -> @Sendable () -> Void
    ) -> Bool {
        let face = LegacyFace.shared
        let call = "registerSyncBizWithName:syncObserver:selector:"
        guard face.canRegister(bizName, call: call) else { return false }
        // What this observer had before ends first: the centre would call it twice, or end both. Then the data begins.
        _ = face.observers.remove(observer, of: bizName)
        face.observers.insert(observer, of: bizName, removal: listen())
        return face.register(bizName, call: call) { message in
            NotificationCenter.default.post(
                name: Notification.Name(bizName), object: nil, userInfo: message.userInfo)
        }
    }

    /// Ends an observer's listening to a Sync ID. Once nobody listens, its data waits in the local store.
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

    /// Ends all of an observer's listening; to be called before it goes.
    public class func removeSyncNotificationObserver(_ observer: AnyObject) {
        for bizName in LegacyFace.shared.observers.bizTypes(of: ObjectIdentifier(observer)) {
            _ = unregister(bizName, ObjectIdentifier(observer), call: "removeSyncNotificationObserver:")
        }
    }

    private class func unregister(_ bizName: String, _ observer: ObjectIdentifier, call: String) -> Bool {
        guard LegacyFace.shared.started(call) != nil else { return false }
        let (wasThere, isLast) = LegacyFace.shared.observers.remove(observer, of: bizName)
        if wasThere, isLast { LegacyFace.shared.unregister(bizName, call: call) }
        return wasThere
    }

    /// The app has processed the data of a notification: nothing of it comes again. On the disk a moment later.
    ///
    /// - Parameter userInfo: the notification's; what is not of this library is ignored.
    public class func responseMessageNotify(_ userInfo: [AnyHashable: Any]) {
        guard let message = SyncMessage(userInfo: userInfo) else { return }
        LegacyFace.shared.confirm(message, call: "responseMessageNotify:")
    }
}
