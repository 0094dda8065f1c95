#if canImport(UIKit)
    import Synchronization
    import UIKit

    /// Tells the iOS face when the app comes to the foreground and leaves it; not run here.
    enum AppLifeCycle {
        private static let isFollowed = Mutex(false)

        /// Begins, once.
        static func follow() {
            let isFirst = isFollowed.withLock { isFollowed in
                defer { isFollowed = true }
                return !isFollowed
            }
            guard isFirst else { return }
            observe(UIApplication.willEnterForegroundNotification, isForeground: true)
            observe(UIApplication.didEnterBackgroundNotification, isForeground: false)
        }

        /// The observer stays for the app's life, so nobody needs its token.
        private static func observe(_ name: Notification.Name, isForeground: Bool) {
            _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) { _ in
                LegacyFace.shared.setForeground(isForeground, call: name.rawValue)
            }
        }
    }
#endif
