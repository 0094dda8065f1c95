package import MobileSyncLegacy
import Synchronization

/// The guide's Android sample, rebuilt in Swift: an app that shows the data of one Sync ID.
package final class AndroidSample: ISyncCallback {
    private let bizType: String
    private let shown = Mutex<[SyncItem]>([])

    package init(bizType: String) { self.bizType = bizType }

    /// The items that the app has processed, in order.
    package var items: [SyncItem] { shown.withLock { $0 } }

    /// The application is created: initialise, and register before data can arrive.
    package func create(_ application: MPSyncApplication) {
        MPSync.setup(application)
        MPSync.initialize()
        register()
    }

    /// Registers for the Sync ID.
    package func register() { MPSync.registerBiz(bizType, self) }

    /// Ends the registration.
    package func unregister() { MPSync.unregisterBiz(bizType) }

    /// The first activity is shown.
    package func enterForeground() { MPSync.appToForeground() }

    /// The last activity is hidden.
    package func enterBackground() { MPSync.appToBackground() }

    /// The user has signed in.
    package func signIn(_ userID: String, session: String?) -> Bool {
        MPLogger.setUserId(userID)
        return MPSync.updateUserInfo(session)
    }

    /// The user has signed out.
    package func signOut() {
        MPLogger.setUserId(nil)
        MPSync.clearUserInfo()
    }

    package func onReceiveMessage(_ message: SyncMessage) {
        guard let items = SyncItem.all(in: message.msgData) else { return }
        shown.withLock { $0 += items }
        MPSync.reportMsgReceived(message)
    }
}
