package import Foundation
package import MobileSyncLegacy
import Synchronization

/// The guide's iOS sample, rebuilt in Swift: an app that shows the data of one Sync ID.
///
/// It registers by method, as it must where there are no selectors. On Apple's systems the registration may also be
/// `selector: #selector(receive(_:))`, and `initSync()` follows the app's life cycle; neither is run here.
package final class IOSSample: Sendable {
    /// The guide's category of `MPaaSInterface`, as a subclass.
    private final class Interface: MPaaSInterface, @unchecked Sendable {
        private let user: String

        init(user: String) { self.user = user }

        override func userId() -> String? { user }
    }

    private let bizType: String
    private let shown = Mutex<[SyncItem]>([])

    package init(bizType: String) { self.bizType = bizType }

    /// The items that the app has processed, in order.
    package var items: [SyncItem] { shown.withLock { $0 } }

    /// The application has launched: initialise, which connects, and register.
    package func launch(_ application: MPSyncApplication) {
        MPSyncInterface.initSync(with: application)
        _ = register()
    }

    /// Registers for the Sync ID.
    package func register() -> Bool {
        MPSyncInterface.registerSyncBiz(withName: bizType, syncObserver: self, selector: IOSSample.receive)
    }

    /// Ends the registration.
    package func unregister() -> Bool {
        MPSyncInterface.unRegisterSyncBiz(withName: bizType, syncObserver: self)
    }

    /// The user has signed in.
    package func signIn(_ userID: String, session: String?) -> Bool {
        MPaaSInterface.setSharedInstance(Interface(user: userID))
        return MPSyncInterface.bindUser(withSessionId: session)
    }

    /// The user has signed out.
    package func signOut() {
        MPaaSInterface.setSharedInstance(MPaaSInterface())
        MPSyncInterface.unBindUser()
    }

    /// The notification of the Sync ID.
    package func receive(_ notification: Notification) {
        guard let userInfo = notification.userInfo, let op = userInfo["op"] as? String,
            let items = SyncItem.all(in: op)
        else { return }
        shown.withLock { $0 += items }
        MPSyncInterface.responseMessageNotify(userInfo)
    }
}
