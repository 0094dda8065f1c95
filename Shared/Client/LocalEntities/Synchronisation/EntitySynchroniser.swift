import Concurrency
public import Logging
import MobileSync

/// Passes data and results of a feed to an entity store, and manages the subscriptions of its types (ENT3).
///
/// Keep `run()` running beside the client's own `run()`. The store commits before the feed confirms: after a crash a
/// batch or a result arrives again, and a repeat changes nothing.
public final class EntitySynchroniser<Feed: EntityFeed>: Sendable {
    /// The wait before a batch is stored again after an error; it doubles each time.
    private static var waits: ClosedRange<Duration> { .seconds(1) ... .seconds(30) }

    private let store: EntityStore
    private let feed: Feed
    private let logger: Logger
    private let pause: @Sendable (Duration) async throws -> Void

    /// Makes a synchroniser of a store and the feed of its data.
    public convenience init(store: EntityStore, feed: Feed, logger: Logger) {
        self.init(store: store, feed: feed, logger: logger) { try await Task.sleep(for: $0) }
    }

    /// - Parameter pause: waits for a duration; a test replaces it.
    init(
        store: EntityStore, feed: Feed, logger: Logger, pause: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.store = store
        self.feed = feed
        self.logger = logger
        self.pause = pause
    }

    // MARK: Data

    /// Submits operations that a crash has left, and feeds the store until the task is cancelled, then returns.
    ///
    /// - Throws: `EntityError.foreignStore` when the bound user is not the store's user; errors of the feed.
    public func run() async throws {
        try await tolerateOutage { () async throws(EntityError) in try await store.start() }
        let types = store.schema.synchronised(group: nil).map(\.name)
        for type in types { try await recoverIfNeeded(type) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for type in types { group.addTask { try await self.follow(type) } }
            group.addTask { try await self.followAnswers(to: Set(types + [LogRecordStore.component])) }
            group.addTask {
                await self.feed.feedStatus { self.store.connectionStatusChanged(to: $0, reason: $1) }
            }
            do {
                // `waitForAll` would wait for the other tasks before it throws.
                for try await _ in group {}
            } catch is CancellationError {
                return
            }
        }
    }

    private func follow(_ type: String) async throws {
        try await feed.feed(type) { try await importBatch($0, of: type) }
    }

    private func followAnswers(to components: Set<String>) async throws {
        try await feed.feedResults(of: components, ofUser: store.sender.userID) { result in
            try await retry(component: result.component) { () async throws(EntityError) in
                // The result is applied in spite of the outage.
                try await tolerateOutage { () async throws(EntityError) in try await store.result(result) }
            }
        }
    }

    /// Logs that the submitter did not accept operations; they are submitted again with the next call or start.
    private func tolerateOutage(_ body: () async throws(EntityError) -> Void) async throws(EntityError) {
        do throws(EntityError) {
            try await body()
        } catch {
            guard error.code == .submission else { throw error }
            logger.warning(
                "operations could not be submitted; they are submitted again later", metadata: ["error": "\(error)"])
        }
    }

    private func importBatch(_ batch: EntityBatch, of type: String) async throws {
        guard batch.userID.map(store.isOf) ?? true else {
            throw EntityError(.foreignStore, "data of another user arrived; open that user's store")
        }
        try await retry(component: type) { () async throws(EntityError) in
            try store.importOplogs(batch.payloads, of: type)
            // A resolved conflict can submit an edit again.
            try await tolerateOutage { () async throws(EntityError) in try await store.sender.send() }
        }
    }

    /// Stores data and retries while the disk refuses it. Later data must not be stored before.
    private func retry(component: String, _ body: () async throws(EntityError) -> Void) async throws {
        var wait = Self.waits.lowerBound
        while true {
            do throws(EntityError) {
                return try await body()
            } catch {
                guard error.code == .persistence else { throw error }
                logger.error(
                    "entities could not be stored; the batch is stored again later",
                    metadata: ["type": "\(component)", "error": "\(error)"])
            }
            try await pause(wait)
            wait = min(wait * 2, Self.waits.upperBound)
        }
    }

    // MARK: Synchronisation

    /// Lets the client connect, and sets the arguments that `onSynchronize` receives. Pending changes are not sent
    /// before they are submitted.
    ///
    /// - Parameters:
    ///   - groups: groups of entity types; empty: all. They are only passed to the handler: all subscribed data
    ///     arrives.
    ///   - context: any text of the app.
    public func beginSynchronize(_ groups: [String] = [], context: String = "") {
        store.synchronization.withLock { $0 = SynchronizationRequest(groups: groups, userContext: context) }
        feed.connect()
    }

    /// Lets the client connect, and reconnect on its own, while it runs.
    public func startBackgroundSynchronization() { feed.connect() }

    /// Ends the connection until `startBackgroundSynchronization` or `beginSynchronize`.
    public func stopBackgroundSynchronization() { feed.disconnect() }

    // MARK: Subscriptions

    /// Subscribes a type. After `unsubscribe`, the server sends all its rows again.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, also for a local-only type; `persistence`, also when the client's store
    ///   fails.
    public func subscribe(_ typeName: String) async throws(EntityError) {
        try await perform(.subscribe, typeName) {
            let wasSubscribed = try store.setSubscribed(true, typeName)
            try await feed.resume(typeName)
            if !wasSubscribed { try await recoverIfNeeded(typeName) }
        }
    }

    /// Unsubscribes a type and deletes its rows, including edits. Submitted operations are still sent.
    ///
    /// - Throws: as `subscribe`.
    public func unsubscribe(_ typeName: String) async throws(EntityError) {
        try await perform(.unsubscribe, typeName) {
            _ = try store.setSubscribed(false, typeName)
            try await feed.unsubscribe(typeName)
        }
    }

    /// Suspends a type: no data arrives until `resumeSubscription`. The rows stay.
    ///
    /// - Throws: as `subscribe`.
    public func suspendSubscription(_ typeName: String) async throws(EntityError) {
        try await perform(.suspend, typeName) { try await feed.suspend(typeName) }
    }

    /// Resumes a suspended type.
    ///
    /// - Throws: as `subscribe`.
    public func resumeSubscription(_ typeName: String) async throws(EntityError) {
        try await perform(.resume, typeName) { try await feed.resume(typeName) }
    }

    /// Requests all of the server's rows of a type again. The stored rows stay and are updated.
    ///
    /// - Throws: as `subscribe`.
    public func recover(_ typeName: String) async throws(EntityError) {
        do {
            try await feed.recover(try synchronisedType(typeName))
        } catch {
            throw EntityError.wrapping(error, "recovering \(typeName)")
        }
    }

    /// Deletes a type's rows without an edit, and requests all of the server's rows again. It continues after a crash.
    ///
    /// - Throws: as `subscribe`.
    public func reset(_ typeName: String) async throws(EntityError) {
        do {
            try store.deleteForReset(try synchronisedType(typeName))
            try await recoverIfNeeded(typeName)
        } catch {
            throw EntityError.wrapping(error, "resetting \(typeName)")
        }
        store.notify(.resetSucceeded(typeName: typeName))
    }

    private func recoverIfNeeded(_ typeName: String) async throws {
        guard try store.needsRecovery(typeName) else { return }
        try await feed.recover(typeName)
        try store.clearNeedsRecovery(typeName)
    }

    private func perform(
        _ step: EntitySubscriptionStep, _ typeName: String, _ body: () async throws -> Void
    ) async throws(EntityError) {
        do {
            _ = try synchronisedType(typeName)
            try await body()
        } catch {
            let failure = EntityError.wrapping(error, "\(step) of \(typeName)")
            store.notify(.subscription(step, typeName: typeName, failure: failure))
            throw failure
        }
        store.notify(.subscription(step, typeName: typeName, failure: nil))
    }

    private func synchronisedType(_ name: String) throws(EntityError) -> String {
        try store.schema.synchronised(name).name
    }
}
