public import Logging
import MobileSync
import Synchronization

/// Feeds an entity store with what comes for its types and with the answers to its operations, and subscribes and
/// unsubscribes the types (spec, two-way §2).
///
/// `run()` is to be kept going beside the client's own. Store first, then confirm: after a crash a batch or an answer
/// comes again, and taking it again changes nothing.
public final class EntitySynchroniser<Feed: EntityFeed>: Sendable {
    /// How long it waits before it tries to store a batch again: twice as long each time.
    private static var waits: ClosedRange<Duration> { .seconds(1) ... .seconds(30) }

    private let store: EntityStore
    private let feed: Feed
    private let logger: Logger
    private let pause: @Sendable (Duration) async throws -> Void

    /// A synchroniser of a store with where its data comes from.
    public convenience init(store: EntityStore, feed: Feed, logger: Logger) {
        self.init(store: store, feed: feed, logger: logger) { try await Task.sleep(for: $0) }
    }

    /// - Parameter pause: waits; tests do not.
    init(
        store: EntityStore, feed: Feed, logger: Logger, pause: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.store = store
        self.feed = feed
        self.logger = logger
        self.pause = pause
    }

    // MARK: Data

    /// Submits what a crash has left, and feeds the store until the task is cancelled; then it returns.
    ///
    /// - Throws: `EntityError.foreignStore` when the bound user is not the store's; what the feed throws.
    public func run() async throws {
        do {
            try await store.start()
        } catch {
            guard error.code == .submission else { throw error }
            logger.warning("operations wait for the submitter", metadata: ["error": "\(error)"])
        }
        let types = store.schema.synchronised(group: nil).map(\.name)
        for type in types { try await recoverIfNeeded(type) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for type in types { group.addTask { try await self.follow(type) } }
            group.addTask { try await self.followAnswers(to: Set(types + [EntityTransaction.logComponent])) }
            group.addTask {
                await self.feed.feedStatus { self.store.connectionStatusChanged(to: $0, reason: $1) }
            }
            do {
                // Not waitForAll, which waits for the others before it throws.
                for try await _ in group {}
            } catch is CancellationError {
                return
            }
        }
    }

    private func follow(_ type: String) async throws {
        try await feed.feed(type) { try await take($0, of: type) }
    }

    private func followAnswers(to components: Set<String>) async throws {
        try await feed.feedResults(of: components, ofUser: store.ownerID) { result in
            try await keepTrying(component: result.component) { () async throws(EntityError) in
                do throws(EntityError) {
                    try await store.result(result)
                } catch {
                    // It is taken all the same.
                    guard error.code == .submission else { throw error }
                    logger.warning("operations wait for the submitter", metadata: ["error": "\(error)"])
                }
            }
        }
    }

    private func take(_ batch: EntityBatch, of type: String) async throws {
        guard batch.userID.map({ $0.utf8.elementsEqual(store.userID.utf8) }) ?? true else {
            throw EntityError(.foreignStore, "data of another user came: open that user's store")
        }
        try await keepTrying(component: type) { () async throws(EntityError) in
            try store.importOplogs(batch.payloads, of: type)
        }
    }

    /// Stores what came; while the disk does not take it, nothing after it may be stored either.
    private func keepTrying(component: String, _ body: () async throws(EntityError) -> Void) async throws {
        var wait = Self.waits.lowerBound
        while true {
            do throws(EntityError) {
                return try await body()
            } catch {
                guard error.code == .persistence else { throw error }
                logger.error(
                    "entities could not be stored", metadata: ["type": "\(component)", "error": "\(error)"])
            }
            try await pause(wait)
            wait = min(wait * 2, Self.waits.upperBound)
        }
    }

    // MARK: Synchronisation

    /// Lets the client connect, and names what `onSynchronize` is told; what is pending goes up when it is submitted.
    ///
    /// - Parameters:
    ///   - groups: of entity types; empty: all. Everything that is subscribed comes, whatever is named.
    ///   - context: the app's own words.
    public func beginSynchronize(_ groups: [String] = [], context: String = "") {
        store.synchronization.withLock { $0 = SynchronizationRequest(groups: groups, userContext: context) }
        feed.connect()
    }

    /// Lets the client connect, and come back by itself, for as long as it runs.
    public func startBackgroundSynchronization() { feed.connect() }

    /// Ends the connection until the next start, or `beginSynchronize`.
    public func stopBackgroundSynchronization() { feed.disconnect() }

    // MARK: Subscriptions

    /// Takes data of a type; after `unsubscribe` all that the server has comes again.
    ///
    /// - Throws: `EntityError`: `noSuchClass`, also for a local-only type; `persistence`, also when the client's fails.
    public func subscribe(_ typeName: String) async throws(EntityError) {
        try await perform(.subscribe, typeName) {
            let wasSubscribed = try store.setSubscribed(true, typeName)
            try await feed.resume(typeName)
            if !wasSubscribed { try await recoverIfNeeded(typeName) }
        }
    }

    /// Takes no more data of a type, and deletes what is here, edits included. What was submitted goes up.
    ///
    /// - Throws: As `subscribe`.
    public func unsubscribe(_ typeName: String) async throws(EntityError) {
        try await perform(.unsubscribe, typeName) {
            _ = try store.setSubscribed(false, typeName)
            try await feed.unsubscribe(typeName)
        }
    }

    /// Takes no data of a type until `resumeSubscription`; what is here stays.
    ///
    /// - Throws: As `subscribe`.
    public func suspendSubscription(_ typeName: String) async throws(EntityError) {
        try await perform(.suspend, typeName) { try await feed.suspend(typeName) }
    }

    /// Takes data of a type again.
    ///
    /// - Throws: As `subscribe`.
    public func resumeSubscription(_ typeName: String) async throws(EntityError) {
        try await perform(.resume, typeName) { try await feed.resume(typeName) }
    }

    /// Has all that the server has of a type sent once more; what is here stays and is brought up to date.
    ///
    /// - Throws: As `subscribe`.
    public func recover(_ typeName: String) async throws(EntityError) {
        do {
            try await feed.recover(try synchronisedType(typeName))
        } catch {
            throw EntityError.wrapping(error, "recovering \(typeName)")
        }
    }

    /// Deletes a type's rows, but for those with an edit, and has all that the server has sent once more; goes on after
    /// a crash.
    ///
    /// - Throws: As `subscribe`.
    public func reset(_ typeName: String) async throws(EntityError) {
        do {
            try store.deleteForReset(try synchronisedType(typeName))
            try await recoverIfNeeded(typeName)
        } catch {
            throw EntityError.wrapping(error, "resetting \(typeName)")
        }
        store.tell(.resetSucceeded(typeName: typeName))
    }

    private func recoverIfNeeded(_ typeName: String) async throws {
        guard try store.needsRecovery(typeName) else { return }
        try await feed.recover(typeName)
        try store.noteRecovery(typeName)
    }

    private func perform(
        _ step: EntitySubscriptionStep, _ typeName: String, _ body: () async throws -> Void
    ) async throws(EntityError) {
        do {
            _ = try synchronisedType(typeName)
            try await body()
        } catch {
            let failure = EntityError.wrapping(error, "\(step) of \(typeName)")
            store.tell(.subscription(step, typeName: typeName, failure: failure))
            throw failure
        }
        store.tell(.subscription(step, typeName: typeName, failure: nil))
    }

    private func synchronisedType(_ name: String) throws(EntityError) -> String {
        guard try !store.schema.type(name).isLocalOnly else {
            throw EntityError(.noSuchClass, "\(name) is local only: nothing comes for it")
        }
        return name
    }
}
