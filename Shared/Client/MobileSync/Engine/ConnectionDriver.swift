import DeviceProtocol
import Logging
import NIOCore
import SwiftProtobuf
import SyncModel

/// Performs the actions of the connection's state machine on the local store and the transport. Not thread-safe; the
/// engine owns it.
final class ConnectionDriver {
    let sharedState: ClientSharedState
    private let logger: Logger
    let store: LocalStore
    let delivery: OplogDelivery
    private let parameters: ParameterValues
    private let connects: ConnectBuilder
    private var machine = ClientStateMachine()
    private var channel: (any Channel)?
    /// The facts about this or the last connection.
    private(set) var record = ConnectionRecord()
    private var intake: PushIntake
    /// The progress of the backlog on this connection.
    private var sync: SyncProgress
    private var network: ConnectionNetwork
    private var requests = PendingRequests()
    var recoveries = RecoveryProgress()
    /// The latest time at which the driver asked for the next `ticked` call.
    private var nextTick: ContinuousClock.Instant?

    init(
        configuration: SyncClientConfiguration, sharedState: ClientSharedState, logger: Logger, store: LocalStore,
        delivery: OplogDelivery, parameters: ParameterValues
    ) {
        self.sharedState = sharedState
        self.logger = logger
        self.store = store
        self.delivery = delivery
        self.parameters = parameters
        connects = ConnectBuilder(
            configuration: configuration, store: store, sharedState: sharedState, parameters: parameters)
        intake = PushIntake(store: store, delivery: delivery, sharedState: sharedState)
        sync = SyncProgress(sharedState: sharedState, onSynchronize: configuration.onSynchronize)
        network = ConnectionNetwork(device: store.device, sharedState: sharedState)
    }

    /// Whether the gateway has accepted the connect and the connection has not ended.
    var isOpen: Bool { machine.phase == .open }

    /// The user whose data the replies on this connection can contain.
    var boundUserID: String? { machine.boundUser?.userID }

    // MARK: Connection

    /// Records that a connection attempt begins.
    func attempted() {
        record.connectedAt = nil
        network.begin()
    }

    /// Sends Connect on a new transport connection.
    func opened(_ channel: any Channel) -> ConnectionEnd? {
        guard sharedState.wantsConnection(at: .now), network.isCurrent() else { return leave() }
        self.channel = channel
        machine = ClientStateMachine(learnedHeartbeat: network.learnedHeartbeat)
        record.end = nil
        intake.begin()
        recoveries.retryRefused()
        let user = sharedState.userToBind
        do throws(SyncError) {
            let (connect, points) = try connects.connect(binding: user)
            advanceSync(to: .starting)
            perform(machine.opened(connect, user: user, points: points, now: .now))
        } catch {
            storeFailed(error)
        }
        return record.end
    }

    /// Handles a received frame. Returns the reason when the connection has ended.
    func received(_ packet: Mss_Device_V1_Packet) -> ConnectionEnd? {
        perform(machine.received(packet, now: .now))
        return record.end
    }

    /// Sends the changes that the app made: another user, other parameters or another state.
    func sharedStateChanged() -> ConnectionEnd? {
        guard sharedState.wantsConnection(at: .now), network.isCurrent() else { return leave() }
        let user = sharedState.userToBind
        do throws(SyncError) {
            let (parameters, points) = try connects.bind(user)
            let actions = machine.userChanged(to: user, points: points, parameters: parameters, now: .now)
            if !actions.isEmpty, user != nil { advanceSync(to: .starting) }
            perform(actions)
        } catch {
            storeFailed(error)
            return record.end
        }
        perform(machine.foregroundChanged(to: sharedState.isForeground, now: .now))
        updateResendClocks()
        return record.end
    }

    /// Handles the passage of time. Returns the time of the next call.
    func ticked() -> (end: ConnectionEnd?, next: ContinuousClock.Instant?) {
        guard sharedState.wantsConnection(at: .now) else { return (leave(), nil) }
        perform(machine.ticked(now: .now))
        perform(machine.hasOperations(now: .now))
        perform(machine.hasParameters(now: .now))
        processDueResends()
        reconnectIfSpaceFreed()
        if let retryAt = recoveries.retryAt, .now >= retryAt { recoverRefused() }
        nextTick = [machine.deadline, delivery.nextDue, sharedState.backgroundEnd, recoveries.retryAt]
            .compactMap { $0 }.min()
        return (record.end, nextTick)
    }

    /// Cleans up after the transport connection, or before it closes.
    ///
    /// - Parameter sendsClose: whether the client ends the connection itself and sends a Close.
    func closed(sendsClose: Bool) {
        if sendsClose || record.end == .left { send(.with { $0.close.code = CloseCode.normal.rawValue }) }
        network.save(machine.heartbeat)
        record.lastBoundUser = machine.boundUser
        perform(machine.end(record.end ?? .lost(reason: "the transport connection was lost")))
        if sync.isIncomplete { advanceSync(to: .error(reason: "the connection ended")) }
        sync.end()
        channel = nil
        machine = ClientStateMachine()
        updateResendClocks()
    }

    private func leave() -> ConnectionEnd {
        record.end = .left
        return .left
    }

    /// Ends the connection, so that the client connects again at once.
    func connectAnew() {
        record.end = .left
        sharedState.timerSignals.send(())
    }

    // MARK: Changes by the app

    /// Reports confirmations and resends to the gateway, when there is a connection.
    func reportOplogs() { perform(machine.hasReports()) }

    /// Sends the values for the service, when there is a connection.
    func sendParameters() { perform(machine.hasParameters(now: .now)) }

    /// Sends a request to the gateway.
    func ask(_ request: ClientRequests.Request, then completion: @escaping PendingRequests.Completion) {
        let ticket = requests.add(completion)
        perform(machine.ask(request, ticket: ticket, now: .now))
    }

    /// Sends the subscriptions when there is a connection, and wakes the app's readers.
    func subscriptionsChanged() {
        do throws(SyncError) {
            perform(
                machine.subscriptionsChanged(
                    suspended: store.subscriptions.suspended.sorted(),
                    parameters: try parameters.toSend(ofUser: machine.boundUser?.userID)))
        } catch {
            storeFailed(error)
        }
        updateResendClocks()
        sharedState.dataSignals.send(())
        recover()
    }

    // MARK: Timers

    /// Updates the clocks of the resend ladder after a change of the connection or of the subscriptions.
    private func updateResendClocks() {
        delivery.updateClocks(isOpen: isOpen)
        scheduleTick()
    }

    /// Requests an earlier `ticked` call when a resend or the connection needs it.
    func scheduleTick() {
        let next = [delivery.nextDue, machine.deadline].compactMap { $0 }.min()
        guard let next, nextTick.map({ next < $0 }) ?? true else { return }
        nextTick = next
        sharedState.timerSignals.send(())
    }

    private func processDueResends() {
        do throws(SyncError) {
            if try delivery.processDue(isOpen: isOpen) { perform(machine.hasReports()) }
        } catch {
            storeFailed(error)
        }
    }

    /// Connects again when the store has space for the dropped data.
    private func reconnectIfSpaceFreed() {
        do throws(SyncError) {
            if try intake.hasFreedSpace() { connectAnew() }
        } catch {
            storeFailed(error)
        }
    }

    // MARK: Actions

    private func perform(_ actions: [ClientAction]) {
        for action in actions {
            do throws(SyncError) {
                try perform(action)
            } catch {
                // Only stored data was acknowledged, so the gateway sends the rest again on the next connection.
                storeFailed(error)
                return
            }
        }
    }

    /// Ends the connection, because the local store has failed.
    func storeFailed(_ error: SyncError) {
        logger.error("local store failed", metadata: ["error": "\(error)"])
        record.end = .lost(reason: error.description)
    }

    private func perform(_ action: ClientAction) throws(SyncError) {
        switch action {
        case .send(let packet):
            send(connects.signed(packet))
        case .setSigningTime(let time):
            try store.clock.setSigningTime(time)
        case .ownershipTaken(let request, let epoch):
            sharedState.recordOwnership(request: request, epoch: epoch)
        case .replaceIdentity:
            try store.device.replaceIdentity()
            sharedState.deviceID = store.device.identity.deviceID
            sharedState.events.send(.registeredAnew(deviceID: store.device.identity.deviceID))
        case .store(let batches, let userID, let bindNumber):
            try storePush(batches, userID: userID, bindNumber: bindNumber)
        case .collectReport(let userID, let bindNumber):
            let report = try store.unreported.report(ofUser: userID, bindNumber: bindNumber)
            perform(machine.collected(report, now: .now))
        case .recorded(let report, let userID):
            try store.unreported.recorded(report, ofUser: userID)
            recover()
            reconnectIfSpaceFreed()
        case .connected(let firstResend, let serverTime):
            try connected(firstResend: firstResend, serverTime: serverTime)
        case .collectOperations(let userID):
            let operations = try store.outbox.nextFrame(ofUser: userID, maxBytes: Self.maxOperationsBytes)
            perform(machine.collected(operations, ofUser: userID, now: .now))
        case .operationsAnswered(let answer):
            try store.outbox.answered(taken: answer.taken, over: answer.over, free: answer.free)
            if !answer.over.isEmpty { sharedState.dataSignals.send(()) }
        case .collectParameters(let userID):
            let pending = try parameters.pending(ofUser: userID)
            perform(machine.collected(parameters: pending, ofUser: userID, now: .now))
        case .parametersAnswered(let answer):
            try parameters.apply(answer)
        case .replaceParameters(let list, let userID):
            try parameters.replaceServerValues(with: list, ofUser: userID)
        case .answered(let ticket, let answer):
            let completion = requests.remove(ticket)
            completion?(answer)
        case .caughtUp(let userID):
            guard !intake.isDropping else { return }
            sharedState.isCaughtUp = true
            advanceSync(to: .finishing)
            sharedState.events.send(.caughtUp(userID: userID))
        case .notify(let event):
            // A bind can end the cause of a refused recovery.
            if case .bound = event {
                if let user = machine.boundUser { try store.logins.bound(user) }
                recoverRefused()
            }
            sharedState.events.send(event)
        case .end(let end):
            record.end = end
            updateResendClocks()
        }
    }

    /// Payload bytes of a frame with operations. The rest is for the frame's other fields.
    private static let maxOperationsBytes = DeviceProtocolLimits.operationsBytes - 1_024

    private func storePush(
        _ batches: [Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32
    ) throws(SyncError) {
        guard !intake.isDropping else { return }
        if sync.hasNoData { advanceSync(to: .downloading) }
        guard let outcome = try intake.store(batches, userID: userID, bindNumber: bindNumber) else { return }
        perform(machine.stored(outcome.acknowledgements, rereads: outcome.rereads, foundGap: outcome.foundGap))
        if outcome.hasReports { perform(machine.hasReports()) }
        intake.publish(outcome)
    }

    private func connected(firstResend: Duration?, serverTime: WallTime?) throws(SyncError) {
        record.connectedAt = .now
        delivery.setFirstResend(firstResend)
        updateResendClocks()
        sharedState.setStatus(.connected)
        advanceSync(to: .uploading)
        recoverRefused()
        if let serverTime { try store.clock.setServiceTime(serverTime) }
    }

    private func advanceSync(to step: SyncStep) {
        if sync.advance(to: step) == .cancel { record.end = .left }
    }

    /// Writes without back-pressure. The send window bounds the acknowledgements, and at most one report and one ping
    /// are in flight, so the queue stays short.
    private func send(_ packet: Mss_Device_V1_Packet) {
        guard let channel else { return }
        var buffer = channel.allocator.buffer(capacity: 256)
        PacketEncoder.encode(packet, into: &buffer)
        channel.writeAndFlush(buffer, promise: nil)
    }
}
