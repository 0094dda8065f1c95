import DeviceProtocol
import Foundation
import Logging
import NIOCore
import SwiftProtobuf
import SyncModel

/// Owns a client's local store and performs what the rules of its connection want done, one event at a time.
///
/// It runs on a queue of its own because SQLite waits for the disk; no method suspends, so events never interleave.
actor ClientEngine {
    /// Bytes of a frame that what stands around its parts takes at the most, and a signature.
    private static let frameBytes = 1_024
    private static let libraryVersion = "0.1.0"

    private let executor = BlockingExecutor(label: "mobile-sync")
    private let configuration: SyncClientConfiguration
    let board: ClientBoard
    private let logger: Logger
    private let signer: ConnectSigner?
    let store: LocalStore
    /// The store's operations, for the app's own threads.
    nonisolated let outbox: OperationOutbox
    /// The store's lock: held when this is made; `run()` holds it again at its beginning and releases it at its end.
    nonisolated let lock: StoreLock
    /// The number of the last result that the app was given in this run, by user and component: sequences of different
    /// components do not wait for each other.
    var shownResults: [String: [String: Int64]] = [:]
    var handOut: HandOut
    private var schedule = ResendSchedule()
    /// When `ticked` is called next at the latest, as far as it asked for it.
    private var alarm: ContinuousClock.Instant?
    var machine = ClientStateMachine()
    private var channel: (any Channel)?
    private var connectionEnd: ConnectionEnd?
    /// What of the data that waited is still to come.
    private var sync = SyncProgress.idle
    /// Who waits for the answer to a question.
    private var askers: [UInt64: Asker] = [:]
    private var lastTicket: UInt64 = 0
    var isRecovering = false
    var recoveryRetryAt: ContinuousClock.Instant?
    /// Recoveries that the gateway refused: the others go first.
    var refusedRecoveries: Set<LocalStore.Recovery> = []
    /// Bytes that the store had no room for; what came since was dropped and comes again on the next connection.
    private var lackingBytes: Int?
    /// The app knows that the store is an older copy of itself.
    private var hasToldRollback = false
    /// Who was bound to the last connection when it ended.
    private(set) var lastBoundUser: BoundUser?
    /// When the gateway greeted; nil when the present or last connection never got there.
    private(set) var connectedAt: ContinuousClock.Instant?

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens the store.
    init(configuration: SyncClientConfiguration, board: ClientBoard, logger: Logger) throws(SyncError) {
        self.configuration = configuration
        self.board = board
        self.logger = logger
        signer = configuration.appKey.map(ConnectSigner.init)
        let store = try LocalStore(
            path: configuration.storePath, instanceID: configuration.instanceID, deviceID: configuration.deviceID,
            key: configuration.storeKey, limit: configuration.storeLimit, clock: configuration.clock)
        handOut = HandOut(channels: try store.startOver())
        self.store = store
        outbox = store.outbox
        lock = store.lock
        board.deviceID = store.identity.deviceID
        replacedDamagedStore = store.replacedDamaged
        schedule.ladder = ResendLadder(firstWait: configuration.firstResend ?? Limits.firstResend)
    }

    /// Holds the store for a run. When another client has used it since the last run, everything begins as in a new
    /// client: what the app has not confirmed is handed out once more.
    ///
    /// - Throws: `SyncError`: `storeInUse` when another client uses the store, `storeKey` when another client has
    ///   changed the key, `store`.
    func resumeStore() throws(SyncError) {
        guard let channels = try store.resume() else { return }
        handOut = HandOut(channels: channels)
        let ladder = schedule.ladder
        schedule = ResendSchedule()
        schedule.ladder = ladder
        shownResults = [:]
        board.deviceID = store.identity.deviceID
        board.wakes.send(())
    }

    // MARK: Connection

    /// Whether a damaged file was replaced by a new store.
    nonisolated let replacedDamagedStore: Bool

    /// A connection attempt begins.
    func attempted() {
        connectedAt = nil
        network = board.network
    }

    /// The transport is up.
    func opened(_ channel: any Channel) -> ConnectionEnd? {
        guard board.wantsConnection(at: .now), isOnItsNetwork() else { return leave() }
        self.channel = channel
        machine = ClientStateMachine(learnedHeartbeat: learnedHeartbeat())
        connectionEnd = nil
        lackingBytes = nil
        recoveryRetryAt = nil
        refusedRecoveries = []
        let user = board.userToBind
        let number: UInt64
        let pushToken: Mss_Device_V1_PushToken?
        let parameters: [Mss_Device_V1_Parameter]
        do throws(SyncError) {
            number = try store.countConnection()
            pushToken = try store.pushToken()
            parameters = try toldParameters(ofUser: user?.userID)
        } catch {
            storeFailed(error)
            return connectionEnd
        }
        var connect = Mss_Device_V1_Connect.with {
            $0.connectionNumber = number
            $0.protocolVersion = DeviceProtocolLimits.version
            $0.instanceID = configuration.instanceID
            $0.deviceID = store.identity.deviceID
            $0.deviceSecret = Data(store.identity.secret)
            $0.storeID = store.storeID
            $0.osName = configuration.operatingSystemName
            $0.osVersion = configuration.operatingSystemVersion
            $0.appVersion = configuration.appVersion
            $0.sdkVersion = Self.libraryVersion
            $0.background = !board.isForeground
            $0.suspended = store.suspended.sorted()
            if let pushToken { $0.pushToken = pushToken }
            $0.parameters = parameters
        }
        // The points share what the rest leaves of a frame.
        let taken = (try? connect.serializedBytes() as [UInt8])?.count ?? 0
        let maxBytes = max(0, room(beside: user) - taken) / 2
        connect.syncPoints = store.syncPoints(ofUser: nil, maxBytes: maxBytes)
        announce(.starting)
        perform(machine.opened(connect, user: user, points: points(of: user, maxBytes: maxBytes), now: .now))
        return connectionEnd
    }

    /// A frame came in; returns how the connection ended, when it did.
    func received(_ packet: Mss_Device_V1_Packet) -> ConnectionEnd? {
        perform(machine.received(packet, now: .now))
        return connectionEnd
    }

    /// The app has bound another user, which the connection follows, or reads something else.
    func boardChanged() -> ConnectionEnd? {
        guard board.wantsConnection(at: .now), isOnItsNetwork() else { return leave() }
        let user = board.userToBind
        let parameters: [Mss_Device_V1_Parameter]
        do throws(SyncError) {
            parameters = try toldParameters(ofUser: user?.userID)
        } catch {
            storeFailed(error)
            return connectionEnd
        }
        let taken = parameters.reduce(0) { $0 + $1.value.utf8.count + 80 }
        let points = points(of: user, maxBytes: room(beside: user) - taken)
        let actions = machine.userChanged(to: user, points: points, parameters: parameters, now: .now)
        if !actions.isEmpty, user != nil { announce(.starting) }
        perform(actions)
        perform(machine.foregroundChanged(to: board.isForeground, now: .now))
        keepTime()
        return connectionEnd
    }

    /// Some time has passed; returns when to call again.
    func ticked() -> (end: ConnectionEnd?, next: ContinuousClock.Instant?) {
        guard board.wantsConnection(at: .now) else { return (leave(), nil) }
        perform(machine.ticked(now: .now))
        perform(machine.hasOperations(now: .now))
        perform(machine.hasParameters(now: .now))
        climbLadder()
        useRoom()
        if let recoveryRetryAt, .now >= recoveryRetryAt { recoverRefused() }
        alarm = [machine.deadline, schedule.nextDue(after: .now), board.backgroundEnd, recoveryRetryAt]
            .compactMap { $0 }.min()
        return (connectionEnd, alarm)
    }

    /// The transport is gone, or about to go.
    ///
    /// - Parameter saysGoodbye: the client goes by its own will.
    func closed(saysGoodbye: Bool) {
        if saysGoodbye || connectionEnd == .left { send(.with { $0.close.code = CloseCode.normal.rawValue }) }
        keepHeartbeat()
        lastBoundUser = machine.boundUser
        perform(machine.end(connectionEnd ?? .lost(reason: "the connection is gone")))
        if sync != .idle, sync != .done { announce(.error(reason: "the connection ended")) }
        sync = .idle
        board.isCaughtUp = false
        channel = nil
        machine = ClientStateMachine()
        keepTime()
    }

    // MARK: App

    /// The next oplog for the app, nil when there is none now.
    func nextOplog(of bizType: String?, row: Int64? = nil) throws(SyncError) -> SyncOplog? {
        guard let oplog = try handOut.next(of: bizType, userID: board.user?.userID, row: row, from: store) else {
            return nil
        }
        let wait = ResendSchedule.Wait(channelRow: oplog.channelRow, oplogID: oplog.oplogID, state: oplog.state)
        schedule.start(wait, isCounted: isCounted(oplog.channelRow), at: .now)
        // A repeat is reported.
        if oplog.state.repeats > 0 { perform(machine.hasNews()) }
        setAlarm()
        return oplog
    }

    /// What there is of one channel, nil when there is nothing now.
    func nextBatch(of bizType: String?, limit: Int) throws(SyncError) -> SyncBatch? {
        guard let first = try nextOplog(of: bizType) else { return nil }
        var oplogs = [first]
        while oplogs.count < limit, let next = try nextOplog(of: bizType, row: first.channelRow) { oplogs.append(next) }
        let hasMore = try store.channel(row: first.channelRow).map { channel throws(SyncError) in
            try !store.waiting(in: channel, limit: 1).isEmpty
        }
        // A repeat that is due comes before what waits, whatever its id.
        return SyncBatch(oplogs: oplogs.sorted { $0.oplogID < $1.oplogID }, hasMore: hasMore ?? false)
    }

    /// Notes durably that the app has processed these, and reports it when there is a connection.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        try store.confirm(oplogs)
        for oplog in oplogs { schedule.stop(channelRow: oplog.channelRow, oplogID: oplog.oplogID) }
        perform(machine.hasNews())
    }

    // MARK: Resend ladder

    /// Whether time counts for a channel now: a connection is open, the app reads it, and its user is bound.
    ///
    /// Nothing is read of what is suspended.
    private func isCounted(_ channelRow: Int64) -> Bool {
        guard machine.phase == .open, let channel = store.channel(row: channelRow) else { return false }
        return channel.isVisible(to: board.user?.userID) && board.isRead(channel.key.bizType)
            && !store.isSuspended(channel.key.bizType)
    }

    /// To be called when what `isCounted` looks at may have changed.
    private func keepTime() {
        schedule.keepTime(at: .now) { isCounted($0) }
        setAlarm()
    }

    /// Asks for `ticked` when the ladder or the connection needs it sooner than it will be called.
    private func setAlarm() {
        let next = [schedule.nextDue(after: .now), machine.deadline].compactMap { $0 }.min()
        guard let next, alarm.map({ next < $0 }) ?? true else { return }
        alarm = next
        board.alarms.send(())
    }

    /// What has waited long enough is given to the app again, or given up.
    private func climbLadder() {
        let due = schedule.takeDue(at: .now)
        var dead: [ResendSchedule.Wait] = []
        for wait in due {
            switch schedule.ladder.next(after: wait.state).step {
            case .handOut: handOut.repeatOplog(wait)
            case .dead: dead.append(wait)
            }
        }
        if dead.count < due.count { board.wakes.send(()) }
        guard !dead.isEmpty else { return }
        do throws(SyncError) {
            try store.giveUp(dead)
            perform(machine.hasNews())
        } catch {
            for wait in dead { schedule.start(wait, isCounted: isCounted(wait.channelRow), at: .now) }
            storeFailed(error)
        }
    }

    // MARK: Actions

    func perform(_ actions: [ClientAction]) {
        for action in actions {
            do throws(SyncError) {
                try perform(action)
            } catch {
                // Nothing was acknowledged that is not stored: the gateway sends it again on the next connection.
                storeFailed(error)
                return
            }
        }
    }

    func storeFailed(_ error: SyncError) {
        logger.error("local store failed", metadata: ["error": "\(error)"])
        connectionEnd = .lost(reason: error.description)
    }

    private func perform(_ action: ClientAction) throws(SyncError) {
        switch action {
        case .send(let packet):
            send(signer?.signed(packet, now: store.signingTime) ?? packet)
        case .signBy(let time):
            try store.setSigningTime(time)
        case .ownershipTaken(let request, let epoch):
            board.settle(request: request, epoch: epoch)
        case .takeNewIdentity:
            try store.takeNewIdentity()
            board.deviceID = store.identity.deviceID
            board.events.send(.registeredAnew(deviceID: store.identity.deviceID))
        case .store(let batches, let userID, let bindNumber):
            // What follows a batch that was dropped is dropped too; it would pass for a gap.
            guard lackingBytes == nil else { return }
            announceDownload()
            let outcome = try store.store(batches, userID: userID, bindNumber: bindNumber)
            if outcome.isFull {
                lackingBytes = LocalStore.bytes(of: batches.lazy.flatMap(\.entries))
                return board.events.send(.storeFull)
            }
            perform(
                machine.stored(outcome.acknowledgements, rereads: outcome.rereads, foundGap: outcome.foundGap))
            if outcome.hasNews { perform(machine.hasNews()) }
            if outcome.isRolledBack, !hasToldRollback {
                hasToldRollback = true
                board.events.send(.storeRolledBack)
            }
            if outcome.hasResults { board.wakes.send(()) }
            guard !outcome.filledChannels.isEmpty else { return }
            handOut.filled(outcome.filledChannels)
            board.wakes.send(())
        case .collectReport(let userID, let bindNumber):
            perform(machine.collected(try store.report(ofUser: userID, bindNumber: bindNumber), now: .now))
        case .recorded(let report, let userID):
            try store.recorded(report, ofUser: userID)
            recover()
            useRoom()
        case .connected(let firstResend, let serverTime):
            try connected(firstResend: firstResend, serverTime: serverTime)
        case .collectOperations(let userID):
            try collectOperations(ofUser: userID)
        case .operationsAnswered(let answer):
            try note(answer)
        case .collectParameters(let userID):
            try collectParameters(ofUser: userID)
        case .parametersAnswered(let answer):
            try note(answer)
        case .learnParameters(let parameters, let userID):
            try learn(parameters, ofUser: userID)
        case .answered(let ticket, let answer):
            askers.removeValue(forKey: ticket)?(answer)
        case .caughtUp(let userID):
            guard lackingBytes == nil else { return }
            board.isCaughtUp = true
            announce(.finishing)
            board.events.send(.caughtUp(userID: userID))
        case .notify(let event):
            // It may be what a recovery waits for.
            if case .bound = event { recoverRefused() }
            board.events.send(event)
        case .end(let end):
            connectionEnd = end
            keepTime()
        }
    }

    private func connected(firstResend: Duration?, serverTime: WallTime?) throws(SyncError) {
        connectedAt = .now
        schedule.ladder = ResendLadder(firstWait: configuration.firstResend ?? firstResend ?? Limits.firstResend)
        keepTime()
        board.setStatus(.connected)
        announce(.uploading)
        recoverRefused()
        if let serverTime { try store.setServiceTime(serverTime) }
    }

    // MARK: Questions

    /// What is done with the answer to a question.
    typealias Asker = @Sendable (ClientRequests.Answer) -> Void

    /// Asks the gateway.
    func ask(_ question: ClientRequests.Question, then asker: @escaping Asker) {
        lastTicket += 1
        askers[lastTicket] = asker
        perform(machine.ask(question, ticket: lastTicket, now: .now))
    }

    /// Tells the gateway, when there is a connection, and the app's readers.
    func subscriptionsChanged() {
        do throws(SyncError) {
            perform(
                machine.subscriptionsChanged(
                    suspended: store.suspended.sorted(),
                    parameters: try toldParameters(ofUser: machine.boundUser?.userID)))
        } catch {
            storeFailed(error)
        }
        keepTime()
        board.wakes.send(())
        recover()
    }

    /// The user whose data answers of the present connection may hold.
    var boundUserID: String? { machine.boundUser?.userID }

    // MARK: Synchronisation

    private func announce(_ step: SyncStep) {
        switch step {
        case .starting: (sync, board.isCaughtUp) = (.begun, false)
        case .downloading: sync = .downloading
        case .finishing: sync = .done
        case .uploading, .error: break
        }
        guard configuration.onSynchronize?(step) == .cancel else { return }
        board.setWanted(false)
        connectionEnd = .left
    }

    private func announceDownload() {
        if sync == .begun { announce(.downloading) }
    }

    // MARK: Wishes

    /// The network that this connection was made on.
    private var network: NetworkPath?

    /// Whether the device is where this connection was made; the first word on that is taken as such.
    private func isOnItsNetwork() -> Bool {
        network = network ?? board.network
        return network?.name == board.network?.name
    }

    private func leave() -> ConnectionEnd {
        connectionEnd = .left
        return .left
    }

    /// Ends the connection, if there is one, for another at once.
    func connectAnew() {
        connectionEnd = .left
        board.alarms.send(())
    }

    /// Connects anew when there is room again for what was dropped: the gateway knows of confirmations, or something
    /// was deleted or ran out.
    private func useRoom() {
        guard let lackingBytes else { return }
        do throws(SyncError) {
            guard try store.makeRoom(for: lackingBytes) else { return }
            connectAnew()
        } catch {
            storeFailed(error)
        }
    }

    private func learnedHeartbeat() -> Heartbeat.Learned {
        // Not to know it costs a few pings.
        return (try? store.heartbeat(of: networkName)) ?? Heartbeat.Learned()
    }

    private func keepHeartbeat() {
        guard let learned = machine.heartbeat?.learned, learned != Heartbeat.Learned() else { return }
        try? store.setHeartbeat(learned, of: networkName)
    }

    private var networkName: String { String((network?.name ?? "").prefix(100)) }

    /// Writes without waiting. The gateway's window bounds the acknowledgements, and there is one report and one ping
    /// at a time, so little can pile up.
    private func send(_ packet: Mss_Device_V1_Packet) {
        guard let channel else { return }
        var buffer = channel.allocator.buffer(capacity: 256)
        PacketEncoder.encode(packet, into: &buffer)
        channel.writeAndFlush(buffer, promise: nil)
    }

    private func points(of user: BoundUser?, maxBytes: Int) -> [Mss_Device_V1_SyncPoint] {
        user.map { store.syncPoints(ofUser: $0.userID, maxBytes: maxBytes) } ?? []
    }

    /// Bytes of a frame that binds this user, for the rest of it.
    private func room(beside user: BoundUser?) -> Int {
        let ids = (user?.userID.utf8.count ?? 0) + (user?.sessionID.utf8.count ?? 0)
        return DeviceProtocolLimits.toGatewayBytes - Self.frameBytes - ids
    }
}
