import DeliveryHistory
import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel

@testable import MobileSync

/// A phone: the client's real state machine, store, hand-out and resend schedule, and an app that confirms most
/// oplogs. `ClientEngine` does the same on a queue and a socket of its own.
final class SimulatedDevice {
    let id: String
    private let simulation: Simulation
    private let instanceID: String
    private let path: String
    /// The phone's wall clock.
    private let wallClock: SimulatedClock
    /// The gateways that the phone can connect to.
    private let gateways: () -> [SimulatedGateway]
    private let history: History
    private var store: LocalStore?
    private(set) var user: BoundUser?
    private var machine = ClientStateMachine()
    private var policy = ReconnectPolicy()
    private var handOut = HandOutSelector(channels: [])
    private var schedule = ResendSchedule()
    private var link: SimulatedLink?
    private var end: ConnectionEnd?
    private var openedAt: Duration?
    /// The number of the app's start. Actions of an earlier start have no effect.
    private var life = 0
    private var attempt = 0
    /// The number of the app's requests for a bind.
    private var requests: UInt64 = 0
    /// Called when the tenant calls the bound session invalid.
    var whenSessionInvalid: (String) -> Void = { _ in }
    /// Whether the device also acknowledges data that it does not have or that belongs to another user.
    var lies = false
    private var firstAck: Mss_Device_V1_Packet?
    /// The probabilities of repeated and missing frames on its connections.
    var repeatedFrames = 0.0
    var frameHoles = 0.0
    /// The probability that the app does not confirm a hand-out.
    var forgets = 0.02

    init(
        _ id: String, instanceID: String, folder: String, user: BoundUser?, history: History, in simulation: Simulation,
        gateways: @escaping () -> [SimulatedGateway]
    ) {
        self.id = id
        self.instanceID = instanceID
        self.user = user
        self.user?.request = 0
        self.history = history
        self.simulation = simulation
        self.gateways = gateways
        path = "\(folder)/\(id).sqlite"
        wallClock = simulation.makeClock()
        history.bound(id, of: instanceID, to: user)
        start()
        simulation.every(.seconds(1)) { [weak self] in
            self?.tick()
            return self != nil
        }
    }

    // MARK: The app's life

    private func start() {
        life += 1
        do {
            let store = try LocalStore(
                path: path, instanceID: instanceID, deviceID: id, clock: { [wallClock] in wallClock.time },
                now: { [simulation] in simulation.now }, makeStoreID: { "store-\(id)" })
            handOut = HandOutSelector(channels: try store.startOver())
            self.store = store
        } catch {
            history.fault(.delivered, "cannot open the store of \(id): \(error)")
        }
        schedule = ResendSchedule()
        schedule.ladder = ResendLadder(firstWait: .seconds(1))
        history.appBegan(id)
        connectSoon(.zero)
        read()
    }

    /// Kills the app, and starts it again after the downtime.
    ///
    /// - Parameter downtime: nil for a short random time.
    func crash(for downtime: Duration? = nil) {
        guard store != nil else { return }
        simulation.trace("crash", about: id)
        leave(isHeard: true)
        store = nil
        life += 1
        simulation.after(downtime ?? simulation.pick(.milliseconds(50), .seconds(3))) { [weak self] in self?.start() }
    }

    /// Binds another user, or the same user with another session.
    func bind(_ user: BoundUser?) {
        requests += 1
        self.user = user
        self.user?.request = requests
        history.bound(id, of: instanceID, to: user)
        guard let store else { return }
        perform(machine.userChanged(to: self.user, points: points(in: store), now: simulation.now))
        updateResendClocks()
        read()
    }

    // MARK: Connection

    private func connectSoon(_ delay: Duration) {
        let life = life
        simulation.after(delay + simulation.pick(.milliseconds(5), .milliseconds(50))) { [weak self] in
            guard let self, self.life == life, link == nil, store != nil else { return }
            connect()
        }
    }

    private func connect() {
        guard let store, let gateway = pickGateway() else { return connectSoon(.milliseconds(300)) }
        let link = SimulatedLink(simulation)
        self.link = link
        (link.repeats, link.holes) = (repeatedFrames, frameHoles)
        attempt += 1
        let attempt = attempt
        end = nil
        openedAt = nil
        machine = ClientStateMachine()
        link.whenAtDevice = { [weak self] packet in
            guard let self, self.attempt == attempt, self.link != nil else { return }
            simulation.trace("receives", about: "\(id) \(Self.text(packet))")
            perform(machine.received(packet, now: simulation.now))
            leaveIfEnded()
        }
        link.whenClosedAtDevice = { [weak self] in
            guard let self, self.attempt == attempt, self.link != nil else { return }
            end = end ?? .lost(reason: "the connection is lost")
            leaveIfEnded()
        }
        link.whenSent = { [weak self] packet in
            guard let self else { return }
            history.gatewaySent(packet, to: id, over: attempt)
        }
        link.whenGatewayReceives = { [weak self] packet in
            guard let self else { return }
            history.gatewayReceived(packet, from: id, over: attempt)
        }
        gateway.accept(link)
        guard let number = try? store.device.countConnection() else {
            return history.fault(.delivered, "\(id) cannot count its connection")
        }
        let connect = Mss_Device_V1_Connect.with {
            $0.connectionNumber = number
            $0.protocolVersion = DeviceProtocolLimits.version
            $0.instanceID = instanceID
            $0.deviceID = id
            $0.deviceSecret = Data(store.device.identity.secret)
            $0.storeID = store.file.storeID
            $0.osName = "Android"
            $0.appVersion = "1.0"
            $0.syncPoints = store.channels.syncPoints(ofUser: nil, maxBytes: 2_048)
        }
        perform(machine.opened(connect, user: user, points: points(in: store), now: simulation.now))
        leaveIfEnded()
    }

    private func pickGateway() -> SimulatedGateway? {
        let there = gateways().filter(\.process.isAlive)
        return there.isEmpty ? nil : simulation.pick(there)
    }

    private func points(in store: LocalStore) -> [Mss_Device_V1_SyncPoint] {
        user.map { store.channels.syncPoints(ofUser: $0.userID, maxBytes: 2_048) } ?? []
    }

    /// Leaves the connection when the state machine has ended it.
    private func leaveIfEnded() {
        guard let end, link != nil else { return }
        let openFor = openedAt.map { simulation.elapsed - $0 }
        leave(isHeard: true)
        switch policy.next(after: end, openFor: openFor, now: simulation.elapsed, random: simulation.chance()) {
        case .wait(let delay, let least), .waitElsewhere(_, let delay, let least):
            connectSoon(min(delay + least, .seconds(5)))
        case .waitSignedOut(let delay):
            connectSoon(min(delay, .seconds(5)))
        case .stop(let code, let reason):
            history.fault(.delivered, "\(id) received a close without reconnection: \(code) \(reason)")
        }
    }

    private func leave(isHeard: Bool) {
        guard let link else { return }
        self.link = nil
        _ = machine.end(.left)
        history.lost(id)
        if isHeard { link.closedByDevice() }
        updateResendClocks()
    }

    /// Ends the faults of the current connection.
    func endFaults() { link.map { ($0.repeats, $0.holes) = (0, 0) } }

    /// Sets the phone's clock.
    func setClock(by change: Duration) { wallClock.jump(by: change) }

    /// Breaks the connection.
    func reset() {
        link?.reset()
    }

    /// Drops all data in one or both directions for a while, then breaks the connection.
    func cut(up: Bool, down: Bool, for duration: Duration) {
        guard let link else { return }
        if up { link.losesUp = true }
        if down { link.losesDown = true }
        simulation.after(duration) { link.reset() }
    }

    var isConnected: Bool { link != nil && machine.phase == .open }

    // MARK: Time

    private func tick() {
        guard let store else { return }
        perform(machine.ticked(now: simulation.now))
        leaveIfEnded()
        var dead: [ResendSchedule.Wait] = []
        for wait in schedule.removeDue(at: simulation.now) {
            switch schedule.ladder.next(after: wait.state).step {
            case .handOut: handOut.enqueueResend(wait)
            case .dead: dead.append(wait)
            }
        }
        do {
            if !dead.isEmpty { try store.oplogs.markDead(dead) }
        } catch {
            history.fault(.delivered, "\(id) cannot mark a dead letter: \(error)")
        }
        read()
    }

    private func isCounted(_ row: Int64) -> Bool {
        machine.phase == .open && store?.channels.channel(row: row)?.isVisible(to: user?.userID) ?? false
    }

    private func updateResendClocks() { schedule.updateClocks(at: simulation.now) { isCounted($0) } }

    // MARK: The app

    /// Hands all available oplogs to the app.
    private func read() {
        guard let store else { return }
        do {
            while let oplog = try handOut.next(of: nil, userID: user?.userID, from: store) {
                history.handedOut(oplog, to: id, of: instanceID)
                schedule.start(
                    ResendSchedule.Wait(
                        channelRow: oplog.channelRow, oplogID: oplog.oplogID, state: oplog.state),
                    isCounted: isCounted(oplog.channelRow), at: simulation.now)
                if oplog.state.repeats > 0 { perform(machine.hasReports()) }
                guard !simulation.happens(forgets) else { continue }
                let life = life
                simulation.after(simulation.pick(.zero, .milliseconds(100))) { [weak self] in
                    guard let self, self.life == life else { return }
                    confirm(oplog)
                }
            }
        } catch {
            history.fault(.delivered, "\(id) cannot read: \(error)")
        }
    }

    private func confirm(_ oplog: SyncOplog) {
        do {
            try store?.oplogs.confirm([oplog])
            history.confirmed(oplog, by: id, of: instanceID)
            schedule.stop(channelRow: oplog.channelRow, oplogID: oplog.oplogID)
            perform(machine.hasReports())
        } catch {
            history.fault(.delivered, "\(id) cannot confirm: \(error)")
        }
    }

    // MARK: Lies

    /// Sends wrong acknowledgements for channels of one device or one user. They harm no other receiver.
    private func lie(after packet: Mss_Device_V1_Packet) {
        guard case .storedAck? = packet.body, simulation.happens(0.5) else { return }
        firstAck = firstAck ?? packet
        var lie = simulation.happens(0.2) ? firstAck ?? packet : packet
        lie.storedAck.channels.removeAll { SyncModel.ChannelKind(wire: $0.kind)?.isGlobal != false }
        for index in lie.storedAck.channels.indices {
            switch simulation.pick(0...3) {
            case 0: lie.storedAck.channels[index].upto += Int64(simulation.pick(1...1_000))
            case 1: lie.storedAck.channels[index].upto = .max
            case 2: lie.storedAck.channels[index].bizType = simulation.pick(["CHAT", "DEVICE", "SOLO", "NONE"])
            default: lie.storedAck.channels[index].bindNumber &-= 1
            }
        }
        lie.storedAck.rereads = [UInt64(simulation.pick(0...9))]
        link?.toGateway(lie)
    }

    // MARK: Actions

    /// The frame as text without the secret, which differs in every run.
    private static func text(_ packet: Mss_Device_V1_Packet) -> String {
        var packet = packet
        if case .connect? = packet.body { packet.connect.deviceSecret = Data() }
        return packet.textFormatString().split(separator: "\n").joined(separator: " ")
    }

    private func perform(_ actions: [ClientAction]) {
        for action in actions {
            do {
                try perform(action)
            } catch {
                history.fault(.delivered, "the store of \(id) failed: \(error)")
            }
        }
    }

    private func perform(_ action: ClientAction) throws {
        guard let store else { return }
        switch action {
        case .send(let packet):
            history.deviceSent(packet, by: id, over: attempt)
            simulation.trace("sends", about: "\(id) \(Self.text(packet))")
            link?.toGateway(packet)
            if lies { lie(after: packet) }
        case .store(let batches, let userID, let bindNumber):
            let outcome = try store.store(batches, userID: userID, bindNumber: bindNumber)
            simulation.trace("stored", Int64(batches.count), outcome.foundGap ? 1 : 0, about: id)
            perform(machine.stored(outcome.acknowledgements, rereads: outcome.rereads, foundGap: outcome.foundGap))
            handOut.markUnread(outcome.filledChannels)
            read()
        case .collectOperations(let userID):
            perform(
                machine.collected(
                    try store.outbox.nextFrame(ofUser: userID, maxBytes: DeviceProtocolLimits.operationsBytes),
                    ofUser: userID, now: simulation.now))
        case .operationsAnswered(let answer):
            try store.outbox.answered(taken: answer.taken, over: answer.over, free: answer.free)
        case .collectParameters(let userID):
            let pending = try store.parameters.all(ofUser: userID).filter { $0.isServer && $0.isPending }
            perform(machine.collected(parameters: pending.map(\.parameter), ofUser: userID, now: simulation.now))
        case .parametersAnswered(let answer):
            try store.parameters.answered(answer.parameters, isKept: answer.refusal == nil, ofUser: answer.userID)
        case .replaceParameters(let list, let userID):
            try store.parameters.replaceServerValues(with: list.parameters, ofUser: userID)
        case .collectReport(let userID, let bindNumber):
            perform(
                machine.collected(
                    try store.unreported.report(ofUser: userID, bindNumber: bindNumber), now: simulation.now))
        case .recorded(let report, let userID):
            try store.unreported.recorded(report, ofUser: userID)
        case .connected(_, let serverTime):
            openedAt = simulation.elapsed
            if let serverTime { try store.clock.setServiceTime(serverTime) }
            if user == nil { history.opened(id) }
            updateResendClocks()
        case .notify(.bound):
            history.opened(id)
        case .end(let end):
            self.end = self.end ?? end
        case .notify(.sessionInvalid(let userID, _)):
            whenSessionInvalid(userID)
        case .ownershipTaken(let request, let epoch):
            if user?.request == request { user?.recordOwnership(epoch: epoch) }
        case .answered, .caughtUp, .setSigningTime, .replaceIdentity, .notify:
            break
        }
    }
}
