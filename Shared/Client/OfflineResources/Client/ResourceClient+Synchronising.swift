public import Foundation

/// Sending, refreshing and pushes.
extension ResourceClient {
    /// Sends edits and refreshes copies until the task is cancelled, then returns.
    ///
    /// - Throws: `ResourceError.alreadyRunning`.
    public func run() async throws(ResourceError) { try await background.run() }

    /// Sends all edits of the bound user, in one request where the backend supports it, otherwise one at a time. Then
    /// it notifies the app of each answered edit. `run()` does the same in the background.
    ///
    /// - Throws: `ResourceError`: `signInNeeded`, `answer`, `store`, `cancelled`. Unsent edits stay queued.
    @discardableResult
    public func synchronise() async throws(ResourceError) -> SynchronisationSummary {
        try await sender.sendAll(owner: sharedState.owner)
    }

    /// Applies a push about changed resources. The change is on disk when the call returns, and `run()` then fetches
    /// the resources that need a refresh. A push about resources that are not cached has no effect.
    ///
    /// - Parameters:
    ///   - payload: `{"resources":[{"uri","etag","action","body"}]}` (README.md, Pushes).
    ///   - userID: the user that the push is for; nil: the copies of all users.
    ///   - pushedAt: the time at which the push service accepted the push, by its clock.
    /// - Throws: `ResourceError`: `push` when the payload is invalid, so a repeat is useless; `store`: the caller must
    ///   pass the push again.
    public func take(push payload: [UInt8], userID: String?, pushedAt: Date) async throws(ResourceError) {
        let push = try ResourcePush(payload, locate: exchange.reference)
        let (present, now) = (sharedState.owner, configuration.clock())
        let changed = try await store.write("applying a push") { transaction in
            try push.changes.flatMap { change in
                try transaction.pushes.apply(change, owner: userID, present: present, pushedAt: pushedAt, now: now)
            }
        }
        sharedState.wake()
        await notifier.notifyChanged(changed, owner: present)
    }

    /// Ends the back-off: another connection has shown that the network works.
    func networkConfirmed() { sharedState.answered() }
}
