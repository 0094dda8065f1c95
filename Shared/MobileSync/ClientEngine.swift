import DeviceProtocol
import Logging
import NIOCore
import SwiftProtobuf

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
        handOut = HandOut(channels: try store.channelsToHandOut())
        self.store = store
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

    /// The app has bound another user; the connection follows.
    func userChanged() -> ConnectionEnd? {
        let user = board.userToBind
        perform(machine.userChanged(to: user, points: points(of: user), now: .now))
        return connectionEnd
    }

    /// Some time has passed; returns when to call again.
    func ticked() -> (end: ConnectionEnd?, next: ContinuousClock.Instant?) {
        perform(machine.ticked(now: .now))
        return (connectionEnd, machine.deadline)
    }

    /// The transport is gone, or about to go.
    ///
    /// - Parameter saysGoodbye: the client goes by its own will.
    func closed(saysGoodbye: Bool) {
        if saysGoodbye { send(.with { $0.close.code = CloseCode.normal.rawValue }) }
        channel = nil
        machine = ClientStateMachine()
    }

    // MARK: App

    /// The next oplog for the app, nil when there is none now.
    func nextOplog(of bizType: String?) throws(SyncError) -> SyncOplog? {
        try handOut.next(of: bizType, userID: board.user?.userID, from: store)
    }

    /// Notes durably that the app has processed these, and reports it when there is a connection.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        try store.confirm(oplogs)
        perform(machine.confirmed())
    }

    // MARK: Actions

    private func perform(_ actions: [ClientAction]) {
        for action in actions {
            do throws(SyncError) {
                try perform(action)
            } catch {
                // Nothing was acknowledged that is not stored: the gateway sends it again on the next connection.
                logger.error("local store failed", metadata: ["error": "\(error)"])
                connectionEnd = .lost(reason: error.description)
                return
            }
        }
    }

    private func perform(_ action: ClientAction) throws(SyncError) {
        switch action {
        case .send(let packet):
            send(packet)
        case .store(let batches, let userID, let bindNumber):
            let outcome = try store.store(batches, userID: userID, bindNumber: bindNumber)
            perform(machine.stored(outcome.acknowledgements, foundGap: outcome.foundGap))
            guard !outcome.filledChannels.isEmpty else { return }
            handOut.filled(outcome.filledChannels)
            board.wakes.send(())
        case .collectConfirmed(let userID, let bindNumber):
            perform(machine.collected(try store.confirmed(ofUser: userID, bindNumber: bindNumber), now: .now))
        case .forget(let reported, let userID):
            try store.forget(reported, ofUser: userID)
        case .connected:
            connectedAt = .now
            board.setStatus(.connected)
        case .notify(let event):
            board.events.send(event)
        case .end(let end):
            connectionEnd = end
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
