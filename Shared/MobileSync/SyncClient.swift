public import Logging
import SyncModel

/// A device's client of the Mobile Sync Service: one connection, one local store, data for the app in order.
///
/// Start `run()` in a task of the app's own and read `oplogs(of:)` in others; after processing an oplog, confirm it.
public final class SyncClient: Sendable {
    private let configuration: SyncClientConfiguration
    private let logger: Logger
    private let board = ClientBoard()
    private let engine: ClientEngine
    private let connection: ClientConnection

    /// Opens the local store; connects only in `run()`.
    ///
    /// - Throws: `SyncError` when the configuration, the trust file or the store cannot be used.
    public init(configuration: SyncClientConfiguration, logger: Logger) throws(SyncError) {
        try Self.check(configuration.instanceID, "instanceID")
        try Self.check(configuration.deviceID, "deviceID")
        self.configuration = configuration
        self.logger = logger
        connection = try ClientConnection(configuration: configuration, board: board)
        engine = try ClientEngine(configuration: configuration, board: board, logger: logger)
    }

    // MARK: Connection

    /// Connects, and connects again whenever the connection is lost, until the task is cancelled; then it returns.
    ///
    /// - Throws: `SyncError.closedForGood` when the gateway forbids to come back, `alreadyRunning`.
    public func run() async throws(SyncError) {
        guard board.beginRun() else { throw SyncError(.alreadyRunning, "run() is already at work on this client") }
        defer {
            board.setStatus(.notAvailable)
            board.endRun()
        }
        var policy = ReconnectPolicy()
        while !Task.isCancelled {
            board.setStatus(.connecting)
            await engine.attempted()
            let end = await connection.serve(engine)
            if Task.isCancelled { return }
            let openFor = await engine.connectedAt.map { $0.duration(to: .now) }
            announce(end, wasConnected: openFor != nil)
            switch policy.next(after: end, openFor: openFor, random: Double.random(in: 0..<1)) {
            case .wait(let delay):
                try? await Task.sleep(for: delay)
            case .waitSignedOut(let delay):
                board.requireSignIn()
                try? await Task.sleep(for: delay)
            case .stop(let code, let reason):
                throw SyncError(
                    .closedForGood, "the gateway closed the connection for good (\(code): \(reason))", closeCode: code)
            }
        }
    }

    private func announce(_ end: ConnectionEnd, wasConnected: Bool) {
        board.setStatus(wasConnected ? .notAvailable : .connectFailed)
        switch end {
        case .closed(let code, let reason, _): board.events.send(.closed(code: code, reason: reason))
        case .gap: board.events.send(.connectionLost(reason: "a gap was found; the sync points are told anew"))
        case .silent: board.events.send(.connectionLost(reason: "the gateway did not answer"))
        case .lost(let reason): board.events.send(.connectionLost(reason: reason))
        }
        logger.debug("connection ended", metadata: ["end": "\(end)"])
    }

    /// The connection's status now.
    public var status: SyncStatus { board.status }

    /// News from now on; a reader that is more than 64 behind loses the oldest.
    public var events: AsyncStream<SyncEvent> { board.events.listen() }

    // MARK: User

    /// Binds a user, or another session of the same; data of a user bound before waits until that one is bound again.
    ///
    /// The gateway's answer comes as an event. Takes effect on every later connection too.
    ///
    /// - Throws: `SyncError.invalidArgument` when an id is empty, over 100 UTF-16 units, or has a NUL.
    public func bind(userID: String, sessionID: String) throws(SyncError) {
        try Self.check(userID, "userID")
        guard sessionID.utf16.count <= Limits.sessionUnits else {
            throw SyncError(.invalidArgument, "sessionID takes at most \(Limits.sessionUnits) characters")
        }
        board.setUser(BoundUser(userID: userID, sessionID: sessionID))
    }

    /// Binds nobody; only device data comes from now on.
    public func unbind() { board.setUser(nil) }

    // MARK: Data

    /// Data of one Sync ID; what came before waits in the local store.
    public func oplogs(of bizType: String) -> SyncOplogs { SyncOplogs(engine: engine, board: board, bizType: bizType) }

    /// Data of every Sync ID; for tools, and apps with one handler.
    public func allOplogs() -> SyncOplogs { SyncOplogs(engine: engine, board: board, bizType: nil) }

    /// Notes that the app has processed an oplog: it never comes again, but as a replay. Durable when this returns.
    ///
    /// - Throws: `SyncError.store`; the oplog will come again.
    public func confirm(_ oplog: SyncOplog) async throws(SyncError) { try await confirm([oplog]) }

    /// Confirms several at once, which costs the disk no more than one.
    public func confirm(_ oplogs: [SyncOplog]) async throws(SyncError) { try await engine.confirm(oplogs) }

    private static func check(_ text: String, _ name: String) throws(SyncError) {
        guard (1...Limits.linkTokenUnits).contains(text.utf16.count), !text.utf8.contains(0) else {
            throw SyncError(.invalidArgument, "\(name) takes 1 to \(Limits.linkTokenUnits) characters without NUL")
        }
    }
}
