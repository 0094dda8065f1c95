#if canImport(UIKit) && !os(watchOS)
    import Concurrency
    import UIKit

    /// Reports when the app enters or leaves the foreground, and requests background time from iOS, which decides how
    /// much it grants. Not compiled here: Linux has no UIKit.
    @MainActor enum AppLifeCycle {
        private struct State {
            var isFollowed = false
            var report: @Sendable (Bool) -> Void = { _ in }
        }

        private nonisolated static let state = LockedValue(State())
        private static var backgroundTime = UIBackgroundTaskIdentifier.invalid

        /// Begins to follow the app's life cycle. A later call replaces the receiver of the reports.
        ///
        /// - Parameter report: called with true when the app enters the foreground, and with false when it leaves it.
        nonisolated static func follow(_ report: @escaping @Sendable (Bool) -> Void) {
            let isFirst = state.withLock { state in
                defer { state = State(isFollowed: true, report: report) }
                return !state.isFollowed
            }
            guard isFirst else { return }
            observe(UIApplication.willEnterForegroundNotification) {
                send(true)
                endBackgroundTime()
            }
            observe(UIApplication.didEnterBackgroundNotification) {
                send(false)
                backgroundTime = UIApplication.shared.beginBackgroundTask { endBackgroundTime() }
            }
        }

        private static func send(_ isForeground: Bool) {
            let report = state.withLock { $0.report }
            report(isForeground)
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
