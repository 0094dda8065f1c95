import Logging

/// The background work of `ResourceClient.run()`: sends edits as soon as possible and refreshes copies.
struct BackgroundRun: Sendable {
    /// The wait after a failure of the store.
    private static let rest = Duration.seconds(10)

    let periodicRefreshPolicy: PeriodicRefreshPolicy
    let periodicRefreshInterval: Duration
    let sender: EditSender
    let refresher: ResourceRefresher
    let sharedState: ResourceSharedState
    let logger: Logger

    /// Works until the task is cancelled, then returns.
    ///
    /// - Throws: `ResourceError.alreadyRunning`.
    func run() async throws(ResourceError) {
        guard sharedState.beginRun() else {
            throw ResourceError(.alreadyRunning, "run() is already running for this client")
        }
        defer { sharedState.endRun() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.runEdits() }
            group.addTask { await self.runRefreshes() }
        }
    }

    private func runEdits() async {
        while !Task.isCancelled {
            let (seen, owner) = (sharedState.wakes, sharedState.owner)
            var limit: Duration?
            do throws(ResourceError) {
                if sharedState.isOnline, try await sender.hasWaitingEdits(owner: owner) {
                    _ = try await sender.sendAll(owner: owner)
                    // Wakes the refreshes that wait until no edits are left.
                    sharedState.wake()
                    continue
                }
            } catch {
                if error.code == .cancelled { return }
                logger.warning("edits could not be sent; they stay queued", metadata: ["error": "\(error)"])
                if error.code == .store { limit = Self.rest }
            }
            await sharedState.wait(after: seen, upTo: limit ?? sharedState.pause)
        }
    }

    private func runRefreshes() async {
        var last = ContinuousClock.now
        while !Task.isCancelled {
            let seen = sharedState.wakes
            var limit = sharedState.pause
            let isPeriodic = periodicRefreshPolicy == .periodicallyRefreshExpiredItems
            let isDue = isPeriodic && last.duration(to: .now) >= periodicRefreshInterval
            do throws(ResourceError) {
                if sharedState.consumeStart() ? periodicRefreshPolicy != .refreshNone : isDue {
                    last = .now
                    try await refresher.requestRefreshOfExpired()
                }
                try await refresher.refresh()
            } catch {
                if error.code == .cancelled { return }
                logger.warning("copies could not be refreshed", metadata: ["error": "\(error)"])
                limit = Self.rest
            }
            if isPeriodic {
                let next = periodicRefreshInterval - last.duration(to: .now)
                limit = min(limit ?? next, max(next, .zero))
            }
            await sharedState.wait(after: seen, upTo: limit)
        }
    }
}
