public import Foundation
import Logging

/// What goes by itself: edits as soon as they can, and refreshes.
extension ResourceClient {
    /// Requests at once.
    private static let width = 4
    /// After the store has failed.
    private static let rest = Duration.seconds(10)

    /// Sends edits and refreshes copies until the task is cancelled; then it returns.
    ///
    /// - Throws: `ResourceError.alreadyRunning`.
    public func run() async throws(ResourceError) {
        guard board.beginRun() else {
            throw ResourceError(.alreadyRunning, "run() is already at work on this client")
        }
        defer { board.endRun() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.runEdits() }
            group.addTask { await self.runRefreshes() }
        }
    }

    private func runEdits() async {
        while !Task.isCancelled {
            let (seen, owner) = (board.wakes, board.owner)
            var limit: Duration?
            do throws(ResourceError) {
                if isOnline, try await store.write("looking for edits", { try $0.hasWaitingEdits(owner: owner) }) {
                    _ = try await sendEdits(owner: owner)
                    // What waits for the edits to be gone.
                    board.wake()
                    continue
                }
            } catch {
                if error.code == .cancelled { return }
                logger.warning("edits could not be sent", metadata: ["error": "\(error)"])
                if error.code == .store { limit = Self.rest }
            }
            await board.wait(after: seen, upTo: limit ?? pause)
        }
    }

    private func runRefreshes() async {
        var last = ContinuousClock.now
        while !Task.isCancelled {
            let seen = board.wakes
            var limit = pause
            let isPeriodic = configuration.periodicRefreshPolicy == .periodicallyRefreshExpiredItems
            let isDue = isPeriodic && last.duration(to: .now) >= configuration.periodicRefreshInterval
            do throws(ResourceError) {
                if board.takeStart() ? configuration.periodicRefreshPolicy != .refreshNone : isDue {
                    last = .now
                    try await wishForExpired()
                }
                try await refresh()
            } catch {
                if error.code == .cancelled { return }
                logger.warning("copies could not be refreshed", metadata: ["error": "\(error)"])
                limit = Self.rest
            }
            if isPeriodic {
                let next = configuration.periodicRefreshInterval - last.duration(to: .now)
                limit = min(limit ?? next, max(next, .zero))
            }
            await board.wait(after: seen, upTo: limit)
        }
    }

    /// How long nothing is asked because of a failure.
    private var pause: Duration? {
        board.pause(at: configuration.clock()).map { .milliseconds(Int64($0 * 1_000) + 1) }
    }

    /// Has everything fetched that has expired.
    func wishForExpired() async throws(ResourceError) {
        let (owner, now) = (board.owner, configuration.clock())
        try await store.write("looking for expired copies") { try $0.wishForExpired(owner: owner, now: now) }
    }

    /// Fetches what is to be fetched, the most urgent first, always from the service; what is pinned `Low` only when no
    /// edits wait.
    ///
    /// - Throws: `ResourceError.store`; a resource that cannot be had is logged.
    func refresh() async throws(ResourceError) {
        let owner = board.owner
        for errand in board.takeErrands() where errand.owner == owner && isOnline {
            do throws(LoadFailure) {
                _ = try await load(errand.uri, kind: errand.kind, request: errand.request, owner: owner)
            } catch {
                logger.debug("a resource was not fetched", metadata: ["uri": "\(errand.uri)", "error": "\(error)"])
            }
        }
        let wishes = try await store.write("looking for wishes") { transaction in
            let waits = try transaction.hasWaitingEdits(owner: owner)
            return try transaction.wishes(owner: owner, pins: waits ? [.high, .normal] : [.high, .normal, .low])
        }
        await withTaskGroup(of: Void.self) { group in
            for (index, wish) in wishes.enumerated() {
                if index >= Self.width { await group.next() }
                guard isOnline, !Task.isCancelled, board.owner == owner else { break }
                group.addTask { await self.refresh(wish, owner: owner) }
            }
        }
    }

    private func refresh(_ wish: StoreTransaction.Wish, owner: String) async {
        do throws(LoadFailure) {
            guard let row = try await stored("reading a copy", { try $0.resource(wish.uri, owner: owner) }) else {
                return
            }
            _ = try await load(wish.uri, kind: wish.kind, saved: row.policy, owner: owner)
            // An older version than one that came meanwhile, or one without room, is no reason to ask for ever.
            try await stored("ending a wish") { try $0.giveUpWish(for: wish.uri, owner: owner) }
        } catch {
            guard case .failed(let error) = error, error.code != .cancelled, error.code != .signInNeeded else { return }
            logger.warning("a copy could not be refreshed", metadata: ["uri": "\(wish.uri)", "error": "\(error)"])
            _ = try? await store.write("ending a wish") { try $0.giveUpWish(for: wish.uri, owner: owner) }
        }
    }

    // MARK: Pushes

    /// Takes a push that tells of changed resources; what it says is on the disk when this returns, and `run()` fetches
    /// at once what it asks to be fetched. What is not cached here costs nothing.
    ///
    /// - Parameters:
    ///   - payload: `{"resources":[{"uri","etag","action","body"}]}` (README.md, Pushes).
    ///   - userID: whom it is for; nil: everybody's copies are meant.
    ///   - pushedAt: when the service took it, by its own clock.
    /// - Throws: `ResourceError`: `push`, which will not be better the next time; `store`: it is to be given once more.
    public func take(push payload: [UInt8], userID: String?, pushedAt: Date) async throws(ResourceError) {
        let push = try ResourcePush(payload, locate: reference)
        let (present, now) = (board.owner, configuration.clock())
        let changed = try await store.write("taking a push") { transaction in
            try push.changes.flatMap { change in
                try transaction.apply(change, owner: userID, present: present, pushedAt: pushedAt, now: now)
            }
        }
        board.wake()
        await tellChanged(changed, owner: present)
    }

    /// Something has shown that the network works: what rests after a failure is tried at once.
    func networkShown() {
        if board.answered() { board.wake() }
    }
}
