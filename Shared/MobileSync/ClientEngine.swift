import DeviceProtocol
import Logging
import NIOCore
import SwiftProtobuf
import SyncModel

/// Owns a client's local store and performs what the rules of its connection want done, one event at a time.
///
/// It runs on a queue of its own because SQLite waits for the disk; no method suspends, so events never interleave.
actor ClientEngine {
    /// Bytes of a frame that sync points of device channels, and of the user's, may take each.
    private static let pointBytes = DeviceProtocolLimits.toGatewayBytes / 2 - 2_048
    private static let libraryVersion = "0.1.0"

    private let executor = BlockingExecutor(label: "mobile-sync")
    private let configuration: SyncClientConfiguration
    private let board: ClientBoard
    private let logger: Logger
    private let store: LocalStore
    private var handOut: HandOut
    private var schedule = ResendSchedule()
    /// When `ticked` is called next at the latest, as far as it asked for it.
    private var alarm: ContinuousClock.Instant?
    private var machine = ClientStateMachine()
    private var channel: (any Channel)?
    private var connectionEnd: ConnectionEnd?
    /// When the gateway greeted; nil when the present or last connection never got there.
    private(set) var connectedAt: ContinuousClock.Instant?

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Opens the store.
    init(configuration: SyncClientConfiguration, board: ClientBoard, logger: Logger) throws(SyncError) {
        self.configuration = configuration
        self.board = board
        self.logger = logger
        let store = try LocalStore(
            path: configuration.storePath, instanceID: configuration.instanceID, deviceID: configuration.deviceID)
        handOut = HandOut(channels: try store.startOver())
        self.store = store
        schedule.ladder = ResendLadder(firstWait: configuration.firstResend ?? Limits.firstResend)
    }

    // MARK: Connection

    /// A connection attempt begins.
    func attempted() {
        connectedAt = nil
    }

    /// The transport is up.
    func opened(_ channel: any Channel) -> ConnectionEnd? {
        self.channel = channel
        machine = ClientStateMachine()
        connectionEnd = nil
        let connect = Mss_Device_V1_Connect.with {
            $0.protocolVersion = DeviceProtocolLimits.version
            $0.instanceID = configuration.instanceID
            $0.deviceID = configuration.deviceID
            $0.storeID = store.storeID
            $0.osName = configuration.operatingSystemName
            $0.osVersion = configuration.operatingSystemVersion
            $0.appVersion = configuration.appVersion
            $0.sdkVersion = Self.libraryVersion
            $0.syncPoints = store.syncPoints(ofUser: nil, maxBytes: Self.pointBytes)
        }
        let user = board.userToBind
        perform(machine.opened(connect, user: user, points: points(of: user), now: .now))
        return connectionEnd
    }

    /// A frame came in; returns how the connection ended, when it did.
    func received(_ packet: Mss_Device_V1_Packet) -> ConnectionEnd? {
        perform(machine.received(packet, now: .now))
        return connectionEnd
    }

    /// The app has bound another user, which the connection follows, or reads something else.
    func boardChanged() -> ConnectionEnd? {
        let user = board.userToBind
        perform(machine.userChanged(to: user, points: points(of: user), now: .now))
        keepTime()
        return connectionEnd
    }

    /// Some time has passed; returns when to call again.
    func ticked() -> (end: ConnectionEnd?, next: ContinuousClock.Instant?) {
        perform(machine.ticked(now: .now))
        climbLadder()
        alarm = [machine.deadline, schedule.nextDue(after: .now)].compactMap { $0 }.min()
        return (connectionEnd, alarm)
    }

    /// The transport is gone, or about to go.
    ///
    /// - Parameter saysGoodbye: the client goes by its own will.
    func closed(saysGoodbye: Bool) {
        if saysGoodbye { send(.with { $0.close.code = CloseCode.normal.rawValue }) }
        channel = nil
        machine = ClientStateMachine()
        keepTime()
    }

    // MARK: App

    /// The next oplog for the app, nil when there is none now.
    func nextOplog(of bizType: String?) throws(SyncError) -> SyncOplog? {
        guard let oplog = try handOut.next(of: bizType, userID: board.user?.userID, from: store) else { return nil }
        let wait = ResendSchedule.Wait(channelRow: oplog.channelRow, oplogID: oplog.oplogID, state: oplog.state)
        schedule.start(wait, isCounted: isCounted(oplog.channelRow), at: .now)
        // A repeat is reported.
        if oplog.state.repeats > 0 { perform(machine.hasNews()) }
        setAlarm()
        return oplog
    }

    /// Notes durably that the app has processed these, and reports it when there is a connection.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        try store.confirm(oplogs)
        for oplog in oplogs { schedule.stop(channelRow: oplog.channelRow, oplogID: oplog.oplogID) }
        perform(machine.hasNews())
    }

    // MARK: Resend ladder

    /// Whether time counts for a channel now: a connection is open, the app reads it, and its user is bound.
    private func isCounted(_ channelRow: Int64) -> Bool {
        guard machine.phase == .open, let channel = store.channel(row: channelRow) else { return false }
        return channel.isVisible(to: board.user?.userID) && board.isRead(channel.key.bizType)
    }

    /// To be called when what `isCounted` looks at may have changed.
    private func keepTime() {
        schedule.keepTime(at: .now) { isCounted($0) }
        setAlarm()
    }

    /// Asks for `ticked` when the ladder needs it sooner than it will be called.
    private func setAlarm() {
        guard let next = schedule.nextDue(after: .now), alarm.map({ next < $0 }) ?? true else { return }
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

    private func perform(_ actions: [ClientAction]) {
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

    private func storeFailed(_ error: SyncError) {
        logger.error("local store failed", metadata: ["error": "\(error)"])
        connectionEnd = .lost(reason: error.description)
    }

    private func perform(_ action: ClientAction) throws(SyncError) {
        switch action {
        case .send(let packet):
            send(packet)
        case .store(let batches, let userID, let bindNumber):
            let outcome = try store.store(batches, userID: userID, bindNumber: bindNumber)
            perform(
                machine.stored(outcome.acknowledgements, rereads: outcome.rereads, foundGap: outcome.foundGap))
            guard !outcome.filledChannels.isEmpty else { return }
            handOut.filled(outcome.filledChannels)
            board.wakes.send(())
        case .collectReport(let userID, let bindNumber):
            perform(machine.collected(try store.report(ofUser: userID, bindNumber: bindNumber), now: .now))
        case .recorded(let report, let userID):
            try store.recorded(report, ofUser: userID)
        case .connected(let firstResend):
            connectedAt = .now
            schedule.ladder = ResendLadder(firstWait: configuration.firstResend ?? firstResend ?? Limits.firstResend)
            keepTime()
            board.setStatus(.connected)
        case .notify(let event):
            board.events.send(event)
        case .end(let end):
            connectionEnd = end
            keepTime()
        }
    }

    /// Writes without waiting. The gateway's window bounds the acknowledgements, and there is one report and one ping
    /// at a time, so little can pile up.
    private func send(_ packet: Mss_Device_V1_Packet) {
        guard let channel else { return }
        var buffer = channel.allocator.buffer(capacity: 256)
        PacketEncoder.encode(packet, into: &buffer)
        channel.writeAndFlush(buffer, promise: nil)
    }

    private func points(of user: BoundUser?) -> [Mss_Device_V1_SyncPoint] {
        user.map { store.syncPoints(ofUser: $0.userID, maxBytes: Self.pointBytes) } ?? []
    }
}
