import Concurrency
public import Logging

/// A client with all that an app runs beside it: the connection, the loops of the modules, the users, and on Apple's
/// systems the network and the life cycle of the app.
///
/// ```swift
/// let app = SyncApp(
///     client: client, parts: [SyncAppPart("chat") { client in try await showMessages(of: client) }], logger: logger)
/// app.start()
/// try await app.signIn(userID: "u1", sessionID: "s1")
/// ```
///
/// `client` below it stays usable: for data, operations and all else that this type does not have.
public final class SyncApp: Sendable {
    private struct State {
        /// The task of the last start; nil before the first one.
        var task: Task<Void, Never>?
        var isStarted = false
        var connectionFailure: SyncError?
    }

    /// The client of the app.
    public let client: SyncClient
    private let parts: [SyncAppPart]
    private let followsSystem: Bool
    private let logger: Logger
    /// The wait before the loop of a part runs again after an error.
    private let pauseAfterFailure: Duration
    private let state = LockedValue(State())
    /// Held while a user signs in or out.
    private let users = AsyncLock()

    /// Creates the app's synchronisation, which does nothing before `start()`.
    ///
    /// - Parameters:
    ///   - client: the client. The app does not call its `run()`.
    ///   - parts: the loops of the app.
    ///   - followsSystem: whether the client is told of the network and the life cycle of the app, on Apple's systems.
    ///     Elsewhere the app calls `setForeground(_:)` and `networkChanged(to:)`.
    ///   - logger: receives a line for each failure.
    public convenience init(client: SyncClient, parts: [SyncAppPart] = [], followsSystem: Bool = true, logger: Logger) {
        self.init(
            client: client, parts: parts, followsSystem: followsSystem, logger: logger,
            pauseAfterFailure: .seconds(10))
    }

    package init(
        client: SyncClient, parts: [SyncAppPart], followsSystem: Bool, logger: Logger, pauseAfterFailure: Duration
    ) {
        self.client = client
        self.parts = parts
        self.followsSystem = followsSystem
        self.logger = logger
        self.pauseAfterFailure = pauseAfterFailure
    }

    // MARK: Start and stop

    /// Starts the connection and the parts, and returns at once. Does nothing when they are started. They, and this
    /// object, live until `stop()`.
    public func start() {
        state.withLock { state in
            guard !state.isStarted else { return }
            state.isStarted = true
            state.connectionFailure = nil
            let former = state.task
            // The app's code has no task here. So this object owns one, and `stop` ends it.
            state.task = Task {
                await former?.value
                await run()
            }
        }
    }

    /// Ends the connection and the parts, and returns when they have ended. The local store is then free for another
    /// client. Data waits in the store, and `start()` continues.
    public func stop() async {
        let task = state.withLock { state in
            state.isStarted = false
            return state.task
        }
        task?.cancel()
        await task?.value
    }

    /// The error that ended the connection for good: `closedForGood` by the gateway, or an error of the local store.
    /// Nil while the client connects and connects again. After the cause is removed, call `stop()` and `start()`.
    public var connectionFailure: SyncError? { state.withLock { $0.connectionFailure } }

    private func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.connect() }
            for part in parts { group.addTask { await self.repeatedly(run: part) } }
            if followsSystem { follow(&group) }
        }
    }

    private func follow(_ group: inout TaskGroup<Void>) {
        #if canImport(UIKit) && !os(watchOS)
            AppLifeCycle.follow { [weak client = client] in client?.setForeground($0) }
        #endif
        #if canImport(Network)
            group.addTask { for await path in NetworkMonitor.paths() { self.networkChanged(to: path) } }
        #endif
    }

    private func connect() async {
        do throws(SyncError) {
            try await client.run()
        } catch {
            state.withLock { $0.connectionFailure = error }
            logger.error("the client stopped connecting", metadata: ["error": "\(error)"])
        }
    }

    private func repeatedly(run part: SyncAppPart) async {
        while !Task.isCancelled {
            do {
                return try await part.run(client)
            } catch {
                if Task.isCancelled { return }
                logger.error("a part of the app failed", metadata: ["part": "\(part.name)", "error": "\(error)"])
                try? await Task.sleep(for: pauseAfterFailure)
            }
        }
    }

    // MARK: Users

    /// Signs a user in: tells the parts, then binds the user. The answer of the gateway is an event of the client.
    ///
    /// - Throws: `SyncError.invalidArgument` when an id breaks its limit (`SyncClient.bind`); an error of a part. No
    ///   user is then bound; call it again.
    public func signIn(userID: String, sessionID: String) async throws {
        try await users.withLock {
            do {
                for part in parts { try await part.userChanged(userID) }
                try client.bind(userID: userID, sessionID: sessionID)
            } catch {
                client.unbind()
                throw error
            }
        }
    }

    /// Signs the user out: unbinds the user, then tells the parts. The user's data waits for the next sign-in.
    ///
    /// - Throws: the first error of a part. The user is unbound, and the other parts are told, all the same.
    public func signOut() async throws {
        try await users.withLock {
            client.unbind()
            var failure: (any Error)?
            for part in parts {
                do { try await part.userChanged(nil) } catch { failure = failure ?? error }
            }
            if let failure { throw failure }
        }
    }

    // MARK: System

    /// Reports whether the app is in the foreground. On iOS with `followsSystem` the app does not call it.
    public func setForeground(_ isForeground: Bool) { client.setForeground(isForeground) }

    /// Reports the device's network to the client and the parts. On Apple's systems with `followsSystem` the app does
    /// not call it.
    public func networkChanged(to path: NetworkPath) {
        client.networkChanged(to: path)
        for part in parts { part.networkChanged(path) }
    }
}
