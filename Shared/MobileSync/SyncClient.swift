import Credentials
public import Logging
import SyncModel

/// A device's client of the Mobile Sync Service: one connection, one local store, data for the app in order.
///
/// Start `run()` in a task of the app's own and read `oplogs(of:)` in others; after processing an oplog, confirm it.
///
/// One client at a time uses a store. A client holds its store from its creation until its `run()` ends, and during
/// each later `run()`. After a run has ended another client can be made for the same store, also while this object lives
/// on. A call that needs the store between runs takes it for that call; it throws `SyncError.storeInUse` while another
/// client holds it.
public final class SyncClient: Sendable {
    private let configuration: SyncClientConfiguration
    private let logger: Logger
    let board = ClientBoard()
    let engine: ClientEngine
    private let connection: ClientConnection

    /// Opens the local store and holds it until the first `run()` ends; connects only in `run()`.
    ///
    /// - Throws: `SyncError` when the configuration, the trust file or the store cannot be used; `storeInUse` when
    ///   another client or process still holds the store after a second.
    public init(configuration: SyncClientConfiguration, logger: Logger) throws(SyncError) {
        try Self.check(configuration.instanceID, "instanceID")
        try Self.check(configuration.deviceID, "deviceID")
        guard configuration.storeLimit >= 1_000_000 else {
            throw SyncError(.invalidArgument, "storeLimit takes at least 1,000,000 bytes")
        }
        self.configuration = configuration
        self.logger = logger
        connection = try ClientConnection(configuration: configuration, board: board)
        engine = try ClientEngine(configuration: configuration, board: board, logger: logger)
    }

    // MARK: Connection

    /// Connects, and connects again whenever the connection is lost, until the task is cancelled; then it returns.
    ///
    /// When it returns or throws, the store is released, so that another client can use it. It can be called again.
    ///
    /// - Throws: `SyncError.closedForGood` when the gateway forbids to come back, `alreadyRunning`; when it is called
    ///   again also `storeInUse` and `storeKey`, when another client has taken the store or changed its key, and
    ///   `store`.
    public func run() async throws(SyncError) {
        guard board.beginRun() else { throw SyncError(.alreadyRunning, "run() is already at work on this client") }
        defer {
            // Before the app hears of the end: it may make another client then.
            engine.lock.release()
            board.setStatus(.notAvailable)
            board.endRun()
        }
        try await engine.resumeStore()
        let home = GatewayAddress(host: configuration.host, port: configuration.port)
        var address = home
        var policy = ReconnectPolicy()
        let start = ContinuousClock.now
        while !Task.isCancelled {
            await waitUntilWanted()
            if Task.isCancelled { return }
            board.setStatus(.connecting)
            await engine.attempted()
            let end = await connection.serve(engine, at: address)
            if Task.isCancelled { return }
            let openFor = await engine.connectedAt.map { $0.duration(to: .now) }
            announce(end, wasConnected: openFor != nil)
            address = home
            let now = start.duration(to: .now)
            switch policy.next(after: end, openFor: openFor, now: now, random: Double.random(in: 0..<1)) {
            case .wait(let delay, let least):
                await pause(for: delay, atLeast: least)
            case .waitSignedOut(let delay):
                board.requireSignIn(of: await engine.lastBoundUser)
                await pause(for: delay, atLeast: .zero)
            case .waitElsewhere(let other, let delay, let least):
                address = other
                await pause(for: delay, atLeast: least)
            case .stop(let code, let reason):
                throw SyncError(
                    .closedForGood, "the gateway closed the connection for good (\(code): \(reason))", closeCode: code)
            }
        }
    }

    private func waitUntilWanted() async {
        let urges = board.urges.listen()
        if board.wantsConnection(at: .now) { return }
        for await _ in urges where board.wantsConnection(at: .now) { return }
    }

    /// Waits, until the app wants a connection sooner: it came to the foreground, or to another network, or binds anew.
    ///
    /// - Parameter least: the gateway's, which nothing cuts short; a wish from then holds when it is over.
    private func pause(for delay: Duration, atLeast least: Duration) async {
        guard delay > .zero else { return }
        let urges = board.urges.listen()
        try? await Task.sleep(for: least)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: delay) }
            group.addTask { for await _ in urges { return } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Lets `run()` have a connection again, now and not after its back-off; it has one from the start.
    public func connect() { board.setWanted(true) }

    /// Ends the connection and makes no other until `connect()`; `run()` goes on, and so does reading what is stored.
    public func disconnect() { board.setWanted(false) }

    /// Tells whether the user looks at the app: some data is sent only then, and the background may cost less
    /// (`SyncClientConfiguration.backgroundTime`). A client begins in the foreground.
    public func setForeground(_ isForeground: Bool) {
        board.setForeground(isForeground, backgroundTime: configuration.backgroundTime)
    }

    /// Tells of the network as the operating system does: without one the client rests, on another it connects anew at
    /// once. Without these calls it finds out by itself, later.
    public func networkChanged(to path: NetworkPath) { board.setNetwork(path) }

    private func announce(_ end: ConnectionEnd, wasConnected: Bool) {
        board.setStatus(wasConnected || end == .left ? .notAvailable : .connectFailed)
        switch end {
        case .closed(let code, let reason, _, _): board.events.send(.closed(code: code, reason: reason))
        case .left: break
        case .gap: board.events.send(.connectionLost(reason: "a gap was found; the sync points are told anew"))
        case .silent: board.events.send(.connectionLost(reason: "the gateway did not answer"))
        case .lost(let reason): board.events.send(.connectionLost(reason: reason))
        }
        logger.debug("connection ended", metadata: ["end": "\(end)"])
    }

    /// The connection's status now.
    public var status: SyncStatus { board.status }

    /// The device as the service knows it: the configuration's id, or the one that the client took when the service
    /// refused that (`SyncEvent.registeredAnew`).
    public var deviceID: String { board.deviceID }

    /// News from now on; a reader that is more than 64 behind loses the oldest.
    public var events: AsyncStream<SyncEvent> { board.events.listen() }

    // MARK: User

    /// Binds a user, or another session of the same; data of a user bound before waits until that one is bound again.
    ///
    /// The gateway's answer comes as an event. Takes effect on every later connection too.
    ///
    /// - Throws: `SyncError.invalidArgument` when the user id is empty, over 100 UTF-16 units, or has a NUL; or when
    ///   the session id has over 4,096, which is the most that an instance can allow. A service that allows less
    ///   refuses the bind.
    public func bind(userID: String, sessionID: String) throws(SyncError) {
        try Self.check(userID, "userID")
        guard sessionID.utf16.count <= Limits.longestSessionUnits else {
            throw SyncError(.invalidArgument, "sessionID takes at most \(Limits.longestSessionUnits) characters")
        }
        board.setUser(BoundUser(userID: userID, sessionID: sessionID))
    }

    /// Binds nobody; only device data comes from now on.
    public func unbind() { board.setUser(nil) }

    // MARK: Wake-up

    /// Says where the service can wake this device while it is not connected, to be called each time the provider gives
    /// the app its token; nil: nowhere. Kept, and told when the device next connects, which is at once when it is news.
    ///
    /// A wake-up has no content: the app is started in the background and connects as always.
    ///
    /// - Throws: `SyncError.invalidArgument` for a token that cannot be the provider's, or has over 1,024 characters;
    ///   `store`.
    public func setPushToken(_ token: SyncPushToken?) async throws(SyncError) {
        let told: PushToken
        switch token {
        case .apns(let bytes): told = PushToken(provider: .apns, text: HexText.of(bytes))
        case .fcm(let text): told = PushToken(provider: .fcm, text: text)
        case nil: told = PushToken(provider: .apns, text: "")
        }
        guard told.isWellFormed, token == nil || !told.text.isEmpty else {
            throw SyncError(.invalidArgument, "the push token is not one that its provider gives")
        }
        try await engine.setPushToken(told)
    }

    // MARK: Data

    /// Data of one Sync ID; what came before waits in the local store.
    public func oplogs(of bizType: String) -> SyncOplogs { SyncOplogs(engine: engine, board: board, bizType: bizType) }

    /// Data of every Sync ID; for tools, and apps with one handler.
    public func allOplogs() -> SyncOplogs { SyncOplogs(engine: engine, board: board, bizType: nil) }

    /// The same in batches of one channel each, as many as are there, up to a limit.
    ///
    /// - Parameter limit: oplogs in one batch, 1 to 1,000.
    public func batches(of bizType: String, upTo limit: Int = 100) -> SyncBatches {
        SyncBatches(engine: engine, board: board, bizType: bizType, limit: min(max(limit, 1), 1_000))
    }

    /// Notes that the app has processed an oplog: it never comes again, but as a replay. Durable when this returns.
    ///
    /// - Throws: `SyncError.store`; the oplog will come again.
    public func confirm(_ oplog: SyncOplog) async throws(SyncError) { try await confirm([oplog]) }

    /// Confirms several at once, which costs the disk no more than one.
    public func confirm(_ oplogs: [SyncOplog]) async throws(SyncError) { try await engine.confirm(oplogs) }

    /// Confirms all of a batch.
    public func confirm(_ batch: SyncBatch) async throws(SyncError) { try await confirm(batch.oplogs) }

    // MARK: Subscriptions

    /// Takes nothing of a Sync ID until `resume`: nothing is sent, and what is here waits. Survives restarts.
    ///
    /// - Throws: `SyncError.store`; `invalidArgument` for a Sync ID that cannot be, or when 200 are suspended already.
    public func suspend(_ bizType: String) async throws(SyncError) {
        try Self.checkTaken(bizType)
        try await engine.setSuspended(true, bizType: bizType)
    }

    /// Takes a suspended Sync ID again: what came since is sent now, as far as its re-push mode goes.
    ///
    /// - Throws: `SyncError.store`.
    public func resume(_ bizType: String) async throws(SyncError) {
        try await engine.setSuspended(false, bizType: bizType)
    }

    /// Has everything of a Sync ID sent again that is valid, confirmed or not; it comes with `isReplay`. Goes on over
    /// lost connections and restarts until all is here. Without a bound user it is for the device's data, or for the
    /// user who is bound next.
    ///
    /// - Throws: `SyncError.store`; `invalidArgument` for a Sync ID that cannot be.
    public func recover(_ bizType: String) async throws(SyncError) {
        try Self.checkTaken(bizType)
        try await engine.beginRecovery(of: bizType)
    }

    /// Deletes the local data of a Sync ID, of the device and the bound user, and takes no more of it until `resume`.
    ///
    /// - Throws: As `suspend`.
    public func unsubscribe(_ bizType: String) async throws(SyncError) {
        try Self.checkTaken(bizType)
        try await engine.unsubscribe(bizType)
    }

    /// Whether everything that waited when the present connection opened, or the user was bound, is here.
    public var isCaughtUp: Bool { board.isCaughtUp }

    // MARK: Store

    /// Writes all payloads in the local store anew under another key, in one transaction; nil: readable for everybody.
    ///
    /// - Throws: `SyncError.invalidArgument` unless the key has 32 bytes, `store`; the former key counts then.
    public func changeStoreKey(to key: [UInt8]?) async throws(SyncError) { try await engine.changeStoreKey(to: key) }

    /// The local store was damaged beyond reading when this client was made: its file stands beside the new one, with
    /// `.damaged` at the end. What was stored and not processed is lost; `recover` and `history` bring back what the
    /// server still has.
    public var replacedDamagedStore: Bool { engine.replacedDamagedStore }

    /// Only Sync IDs that the app itself takes can be suspended and sent again.
    static func checkTaken(_ bizType: String) throws(SyncError) {
        try checkBizType(bizType)
        guard !bizType.isSame(as: ReservedSyncID.results.text) else {
            throw SyncError(.invalidArgument, "\(bizType) is the client's own; see operationResults()")
        }
    }

    private static func checkBizType(_ bizType: String) throws(SyncError) {
        guard (1...Limits.bizTypeUnits).contains(bizType.utf16.count), !bizType.utf8.contains(0) else {
            throw SyncError(.invalidArgument, "a Sync ID has 1 to \(Limits.bizTypeUnits) characters without NUL")
        }
    }

    static func check(_ text: String, _ name: String) throws(SyncError) {
        guard (1...Limits.linkTokenUnits).contains(text.utf16.count), !text.utf8.contains(0) else {
            throw SyncError(.invalidArgument, "\(name) takes 1 to \(Limits.linkTokenUnits) characters without NUL")
        }
    }
}
