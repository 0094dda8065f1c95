#if canImport(UIKit) && !os(watchOS)
    import Synchronization
    import UIKit

    /// Reports to the client when the app enters or leaves the foreground, and requests background time from iOS, which
    /// decides how much it grants. Not tested: the tests run on Linux.
    @MainActor enum AppLifeCycle {
        private nonisolated static let isFollowed = Mutex(false)
        private static var backgroundTime = UIBackgroundTaskIdentifier.invalid

        /// Begins to follow the app's life cycle. Later calls have no effect.
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

        /// The observer stays for the life of the app, so its token is not kept.
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
