#if canImport(UIKit) && !os(watchOS)
    import Synchronization
    import UIKit

    /// Tells the iOS face when the app comes to the foreground and leaves it, and asks iOS for time in the background, of
    /// which it gives as much as it likes; not run here.
    @MainActor enum AppLifeCycle {
        private nonisolated static let isFollowed = Mutex(false)
        private static var backgroundTime = UIBackgroundTaskIdentifier.invalid

        /// Begins, once.
        nonisolated static func follow() {
            let isFirst = isFollowed.withLock { isFollowed in
                defer { isFollowed = true }
                return !isFollowed
            }
            guard isFirst else { return }
            observe(UIApplication.willEnterForegroundNotification) {
                LegacyFace.shared.setForeground(true, call: "initSync")
                endBackgroundTime()
            }
            observe(UIApplication.didEnterBackgroundNotification) {
                LegacyFace.shared.setForeground(false, call: "initSync")
                backgroundTime = UIApplication.shared.beginBackgroundTask { endBackgroundTime() }
            }
        }

        /// The observer stays for the app's life, so nobody needs its token.
        private nonisolated static func observe(
            _ name: Notification.Name, _ body: @escaping @MainActor @Sendable () -> Void
        ) {
            _ = NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) { _ in
                MainActor.assumeIsolated { body() }
            }
        }

        private static func endBackgroundTime() {
            guard backgroundTime != .invalid else { return }
            UIApplication.shared.endBackgroundTask(backgroundTime)
            backgroundTime = .invalid
        }
    }
#endif
