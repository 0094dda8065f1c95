import Credentials
public import Logging
import SyncModel

/// A device's client of the Mobile Sync Service: one connection, one local store, and data for the app in order.
///
/// Call `run()` in a task of the app and read `oplogs(of:)` in other tasks. Confirm each oplog after the app has
/// processed it.
///
/// One client can use a store at a time. A client holds its store from its creation until its first `run()` ends, and
/// during each later `run()`. Between runs another client can be created for the same store, also while this object
/// exists. A call that needs the store between runs locks it for that call, and throws `SyncError.storeInUse` while
/// another client holds it.
public final class SyncClient: Sendable {
    private let configuration: SyncClientConfiguration
    /// The cost of a password check.
    var loginRounds: Int { configuration.loginRounds }
    private let logger: Logger
    let sharedState = ClientSharedState()
    let engine: ClientEngine
    private let connection: ClientConnection

    /// Opens the local store and holds it until the first `run()` ends. The client does not connect before `run()`.
    ///
    /// - Parameters:
    ///   - configuration: the gateway, the device and the limits of the client.
    ///   - logger: receives the client's log lines.
    /// - Throws: `SyncError` when the configuration, the certificate files or the store cannot be used; `storeInUse`
    ///   when another client or process still holds the store after 1 s.
    public init(configuration: SyncClientConfiguration, logger: Logger) throws(SyncError) {
        try ArgumentCheck.identifier(configuration.instanceID, "instanceID")
        try ArgumentCheck.identifier(configuration.deviceID, "deviceID")
        try configuration.checkLimits()
        self.configuration = configuration
        self.logger = logger
        connection = try ClientConnection(configuration: configuration, sharedState: sharedState)
        engine = try ClientEngine(configuration: configuration, sharedState: sharedState, logger: logger)
        if replacedDamagedStore {
            logger.warning(
                "the local store was damaged: it was moved aside, and a new one began",
                metadata: ["store": "\(configuration.storePath)", "replacements": "\(storesReplaced)"])
        }
    }

    // MARK: Connection

    /// Connects, and connects again after every lost connection. Returns when the task is cancelled.
    ///
    /// When it returns or throws, the client releases the store, so that another client can use it. The app can call it
    /// again.
    ///
    /// - Throws: `SyncError.closedForGood` when the gateway does not allow reconnects; `alreadyRunning`. A repeated
    ///   call can also throw `storeInUse` or `storeKey`, when another client holds the store or has changed its key,
    ///   and `store`.
    public func run() async throws(SyncError) {
        guard sharedState.beginRun() else { throw SyncError(.alreadyRunning, "run() of this client is already active") }
        defer {
            // The store is released before the app learns of the end, because the app may create another client then.
            engine.lock.release()
            sharedState.setStatus(.notAvailable)
            sharedState.endRun()
        }
        try await engine.resumeStore()
        let home = GatewayAddress(host: configuration.host, port: configuration.port)
        var address = home
        var policy = ReconnectPolicy()
        let start = ContinuousClock.now
        while !Task.isCancelled {
            await waitUntilWanted()
            if Task.isCancelled { return }
            sharedState.setStatus(.connecting)
            await engine.attempted()
            let end = await connection.serve(engine, at: address)
            if Task.isCancelled { return }
            let openFor = await engine.record.connectedAt.map { $0.duration(to: .now) }
            publish(end, wasConnected: openFor != nil)
            address = home
            let now = start.duration(to: .now)
            switch policy.next(after: end, openFor: openFor, now: now, random: Double.random(in: 0..<1)) {
            case .wait(let delay, let least):
                await pause(for: delay, atLeast: least)
            case .waitSignedOut(let delay):
                sharedState.requireSignIn(of: await engine.record.lastBoundUser)
                await pause(for: delay, atLeast: .zero)
            case .waitElsewhere(let other, let delay, let least):
                address = other
                await pause(for: delay, atLeast: least)
            case .stop(let code, let reason):
                throw SyncError(
                    .closedForGood, "the gateway does not allow reconnects (\(code): \(reason))", closeCode: code)
            }
        }
    }

    private func waitUntilWanted() async {
        let connectSignals = sharedState.connectSignals.listen()
        if sharedState.wantsConnection(at: .now) { return }
        for await _ in connectSignals where sharedState.wantsConnection(at: .now) { return }
    }

    /// Waits before the next connection attempt. The wait ends early when the app comes to the foreground, changes the
    /// network, binds, or calls `connect()`.
    ///
    /// - Parameter least: the part of the wait that the gateway demands. Nothing shortens it.
    private func pause(for delay: Duration, atLeast least: Duration) async {
        guard delay > .zero else { return }
        let connectSignals = sharedState.connectSignals.listen()
        try? await Task.sleep(for: least)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: delay) }
            group.addTask { for await _ in connectSignals { return } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Allows connections again, and ends a back-off at once. Connections are allowed when the client is created.
    public func connect() { sharedState.setWanted(true) }

    /// Ends the connection, and makes no other until `connect()`. `run()` continues, and the app can read stored data.
    public func disconnect() { sharedState.setWanted(false) }

    /// Reports whether the app is in the foreground. A client begins in the foreground. Some data is sent only to apps
    /// in the foreground, and `SyncClientConfiguration.backgroundTime` applies in the background.
    public func setForeground(_ isForeground: Bool) {
        sharedState.setForeground(isForeground, backgroundTime: configuration.backgroundTime)
    }

    /// Reports the device's network. Without a network the client makes no attempts. When the name changes, the client
    /// connects again at once. An app that does not call this method loses time: the client notices a lost network only
    /// by a missing answer.
    public func networkChanged(to path: NetworkPath) { sharedState.setNetwork(path) }

    private func publish(_ end: ConnectionEnd, wasConnected: Bool) {
        sharedState.setStatus(wasConnected || end == .left ? .notAvailable : .connectFailed)
        switch end {
        case .closed(let code, let reason, _, _): sharedState.events.send(.closed(code: code, reason: reason))
        case .left: break
        case .gap:
            sharedState.events.send(
                .connectionLost(reason: "a batch began above the position; the client reports its sync points again"))
        case .silent: sharedState.events.send(.connectionLost(reason: "the gateway did not answer"))
        case .refused(let error):
            sharedState.events.send(.certificateRefused(error))
            logger.error("refused the gateway's certificate", metadata: ["error": "\(error)"])
        case .lost(let reason): sharedState.events.send(.connectionLost(reason: reason))
        }
        logger.debug("connection ended", metadata: ["end": "\(end)"])
    }

    /// The present status of the connection.
    public var status: SyncStatus { sharedState.status }

    /// The device id that the service knows: the id of the configuration, or the id that the client created after the
    /// service refused that one (`SyncEvent.registeredAnew`).
    public var deviceID: String { sharedState.deviceID }

    /// Events from now on. A reader that is more than 64 events behind loses the oldest ones.
    public var events: AsyncStream<SyncEvent> { sharedState.events.listen() }

    // MARK: User

    /// Binds a user, or another session of the bound user. Data of the previously bound user waits until that user is
    /// bound again.
    ///
    /// The gateway's answer arrives as an event (`SyncEvent.bound` or `.bindRefused`). The client repeats the bind on
    /// every later connection.
    ///
    /// - Parameters:
    ///   - userID: the user, 1 to 100 UTF-16 units without NUL.
    ///   - sessionID: the user session that the tenant checks, at most 4,096 UTF-16 units. An instance can allow less,
    ///     and then refuses the bind.
    /// - Throws: `SyncError.invalidArgument` when an id breaks its limit.
    public func bind(userID: String, sessionID: String) throws(SyncError) {
        try ArgumentCheck.identifier(userID, "userID")
        guard sessionID.utf16.count <= Limits.longestSessionUnits else {
            throw SyncError(.invalidArgument, "sessionID must have at most \(Limits.longestSessionUnits) characters")
        }
        sharedState.setUser(BoundUser(userID: userID, sessionID: sessionID))
    }

    /// Ends the bind. From now on the app receives only device data.
    public func unbind() { sharedState.setUser(nil) }

    // MARK: Wake-up

    /// Sets the push token, with which the service can wake this device while it is not connected. Call it whenever the
    /// provider gives the app a token; nil ends wake-ups.
    ///
    /// The client stores the token and reports it with the next connect. When the token has changed, the client
    /// connects again at once. A wake-up has no content: the system starts the app in the background, and the app runs
    /// the client as usual.
    ///
    /// - Throws: `SyncError.invalidArgument` when the token cannot be one of the provider, or has more than 1,024
    ///   characters; `store`.
    public func setPushToken(_ token: SyncPushToken?) async throws(SyncError) {
        let pushToken: PushToken
        switch token {
        case .apns(let bytes): pushToken = PushToken(provider: .apns, text: HexText.of(bytes))
        case .fcm(let text): pushToken = PushToken(provider: .fcm, text: text)
        case nil: pushToken = PushToken(provider: .apns, text: "")
        }
        guard pushToken.isWellFormed, token == nil || !pushToken.text.isEmpty else {
            throw SyncError(.invalidArgument, "the push token does not have the form of its provider")
        }
        try await engine.setPushToken(pushToken)
    }

    // MARK: Data

    /// The oplogs of one Sync ID, beginning with those that wait in the local store.
    public func oplogs(of bizType: String) -> SyncOplogs {
        SyncOplogs(engine: engine, sharedState: sharedState, bizType: bizType)
    }

    /// The oplogs of all Sync IDs, for tools and for apps with one handler.
    public func allOplogs() -> SyncOplogs { SyncOplogs(engine: engine, sharedState: sharedState, bizType: nil) }

    /// The oplogs of one Sync ID in batches. A batch has oplogs of one channel, as many as are available, up to the
    /// limit.
    ///
    /// - Parameters:
    ///   - bizType: the Sync ID.
    ///   - limit: the most oplogs in one batch, 1 to 1,000; other values are clamped. 100 by default.
    public func batches(of bizType: String, upTo limit: Int = 100) -> SyncBatches {
        SyncBatches(engine: engine, sharedState: sharedState, bizType: bizType, limit: ArgumentCheck.clamped(limit))
    }

    /// Records that the app has processed an oplog. The client does not hand it out again, except as a replay
    /// (`SyncOplog.isReplay`). The record is on the disk when the call returns, and the client reports it to the
    /// service.
    ///
    /// - Throws: `SyncError.store`; the client will hand the oplog out again.
    public func confirm(_ oplog: SyncOplog) async throws(SyncError) { try await confirm([oplog]) }

    /// Confirms several oplogs with one write to the disk.
    public func confirm(_ oplogs: [SyncOplog]) async throws(SyncError) { try await engine.confirm(oplogs) }

    /// Confirms all oplogs of a batch.
    public func confirm(_ batch: SyncBatch) async throws(SyncError) { try await confirm(batch.oplogs) }

    // MARK: Subscriptions

    /// Suspends a Sync ID until `resume`, also after restarts. The service sends nothing of it, and oplogs in the local
    /// store wait.
    ///
    /// - Throws: `SyncError.store`; `invalidArgument` for an invalid Sync ID, or when 200 Sync IDs are already
    ///   suspended.
    public func suspend(_ bizType: String) async throws(SyncError) {
        try ArgumentCheck.bizType(bizType)
        try await engine.setSuspended(true, bizType: bizType)
    }

    /// Resumes a suspended Sync ID. The service sends the data that was pushed meanwhile, as far as the configuration's
    /// re-push mode allows.
    ///
    /// - Throws: `SyncError.store`.
    public func resume(_ bizType: String) async throws(SyncError) {
        try await engine.setSuspended(false, bizType: bizType)
    }

    /// Requests all valid oplogs of a Sync ID again, confirmed or not. They arrive with `isReplay`. The recovery
    /// continues after lost connections and restarts until it is complete. Without a bound user it covers the device's
    /// data, or the data of the next bound user.
    ///
    /// - Throws: `SyncError.store`; `invalidArgument` for an invalid Sync ID.
    public func recover(_ bizType: String) async throws(SyncError) {
        try ArgumentCheck.bizType(bizType)
        try await engine.beginRecovery(of: bizType)
    }

    /// Deletes the local data of a Sync ID, of the device and the bound user, and suspends the Sync ID until `resume`.
    ///
    /// - Throws: as `suspend`.
    public func unsubscribe(_ bizType: String) async throws(SyncError) {
        try ArgumentCheck.bizType(bizType)
        try await engine.unsubscribe(bizType)
    }

    /// Whether the client has received the complete backlog of the last connect or bind.
    public var isCaughtUp: Bool { sharedState.isCaughtUp }

    // MARK: Store

    /// Encrypts all payloads in the local store with another key, in one transaction. A nil value removes the
    /// encryption.
    ///
    /// - Throws: `SyncError.invalidArgument` when the key does not have 32 bytes; `store`. After an error the previous
    ///   key stays in force.
    public func changeStoreKey(to key: [UInt8]?) async throws(SyncError) { try await engine.changeStoreKey(to: key) }

    /// Whether the local store was damaged when this client was created. The client then moved the file aside, with the
    /// suffix `.damaged`, and began a new store. Stored oplogs that the app had not processed are lost; `recover` and
    /// `history` fetch those that the server still has.
    public var replacedDamagedStore: Bool { engine.replacedDamagedStore }

    /// The number of damaged stores at this path that were replaced, over all starts of the app.
    public var storesReplaced: Int { SQLiteFile.replacements(of: configuration.storePath) }
}
