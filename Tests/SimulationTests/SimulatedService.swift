import AMQP
import BusMessages
import DeliveryHistory
import Foundation
import SyncModel
import SyncStore

@testable import BackendCalls
@testable import MobileSync
@testable import ServiceKit

/// A whole service with its phones and backends in one thread: faults under load, then healing, then the checks.
// Unchecked: see Simulation.
final class SimulatedService: @unchecked Sendable {
    static let instance = Instance(
        id: InstanceID("sim"), name: "sim", isEnabled: true, validatorURL: "http://tenant",
        verdictLifetime: .seconds(600))
    static let configurations = [
        configuration("CHAT", .user, isMultiDevice: true), configuration("DEVICE", .device),
        configuration("CHECKED", .user, isMultiDevice: true, checksSession: true, lifetime: .seconds(3)),
        configuration("TRUSTED", .user, isMultiDevice: true, checksSession: true), configuration("SOLO", .user),
        configuration("LIVE", .user, isMultiDevice: true, isPersistent: false),
        configuration("LATEST", .user, isMultiDevice: true, repush: .threshold(3)),
        configuration("NEWS", .globalUser, isMultiDevice: true, isImmediate: true),
        configuration("VAULT", .user, checksSession: true), configuration("RULES", .device),
    ]
    /// The configurations of the random pushes. A configuration that is in the list more often gets more pushes.
    private static let load = [0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7].map { configurations[$0] }
    static let liar = "liar"
    /// A run with more events than this does not end by itself.
    private static let mostEvents = 1_000_000
    /// The time under load, and the longest time for healing.
    private static let loadLasts = Duration.seconds(12)
    private static let healsWithin = Duration.seconds(60)

    let simulation: Simulation
    let history: History
    let plan: FaultPlan
    let broker: SimulatedBroker
    let database: SimulatedDatabase
    private let folder: URL
    var writers: [SimulatedWriter] = []
    var gateways: [SimulatedGateway] = []
    private var ingests: [SimulatedIngest] = []
    private var validators: [SimulatedValidator] = []
    var devices: [SimulatedDevice] = []
    private var simple: SimulatedSimpleDevice?
    /// The parts of this run that only its trials have.
    private(set) lazy var trialRun = TrialRun(self)
    let operation: SimulatedOperator
    private var lastConnection: UInt64 = 0
    private var lastPush = 0
    private var lastSession = 0
    /// Pushes that their backends still repeat or wait for.
    var openPushes = 0
    var isHealing = false
    private(set) var faultCounts: [FaultPlan.Kind: Int] = [:]

    private static func configuration(
        _ bizType: String, _ kind: SyncModel.ChannelKind, isMultiDevice: Bool = false, checksSession: Bool = false,
        lifetime: Duration? = nil, isPersistent: Bool = true, repush: RepushMode = .all, isImmediate: Bool = false
    ) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: instance.id, bizType: BizType(bizType), description: "", kind: kind,
            isMultiDevice: isMultiDevice, isPersistent: isPersistent, repush: repush, checksSession: checksSession,
            isOnline: true, isImmediate: isImmediate,
            verdictLifetime: lifetime)
    }

    /// - Parameters:
    ///   - folder: the folder for the phones' local stores.
    ///   - keepsLog: whether traced events are kept as text.
    init(seed: UInt64, folder: URL, keepsLog: Bool = false) {
        let simulation = Simulation(seed: seed, keepsLog: keepsLog)
        self.simulation = simulation
        self.folder = folder
        plan = FaultPlan(simulation)
        simulation.clocksDiffer = plan.trials.contains(.clocks)
        let database = SimulatedDatabase(
            simulation, instances: [Self.instance], configurations: Self.configurations)
        self.database = database
        history = History(
            simulation, instance: Self.instance, configurations: Self.configurations,
            databaseTime: { [unowned database] in database.now })
        broker = SimulatedBroker(simulation)
        operation = SimulatedOperator("operator", number: 0, database: database, broker: broker)
        for number in 1...simulation.pick(1...2) { writers.append(makeWriter("writer-\(number)")) }
        for number in 1...simulation.pick(1...3) { gateways.append(makeGateway("gateway-\(number)")) }
        for number in 1...simulation.pick(1...2) { ingests.append(makeIngest("ingest-\(number)")) }
        validators.append(makeValidator("validator-1"))
        for number in 1...simulation.pick(2...5) { devices.append(makeDevice("device-\(number)")) }
        if plan.hasLiar { devices.append(makeDevice(Self.liar, user: Self.liar)) }
        if plan.hasSimpleDevice {
            simple = SimulatedSimpleDevice(
                "simple", instanceID: Self.instance.id.text, history: history, database: database, in: simulation
            ) { [unowned self] in gateways }
        }
        database.whenAdvanced = { [history] in history.advanced($0, in: $1) }
        database.whenCommitted = { [history] pushes, answers in
            for (push, answer) in zip(pushes, answers) {
                guard let answer, answer.isPersistent, !answer.isDuplicate else { continue }
                history.committed(push.oplog.thirdMessageID.text, answer.oplogID)
            }
        }
        trialRun.enter()
    }

    // MARK: Parts

    private func nextConnection() -> UInt64 {
        lastConnection += 1
        return lastConnection
    }

    private func makeWriter(_ name: String) -> SimulatedWriter {
        let writer = SimulatedWriter(name, number: nextConnection(), database: database, broker: broker)
        if plan.trials.contains(.bursts) { writer.commitTakes = .milliseconds(30) }
        if plan.trials.contains(.bursts) || plan.trials.contains(.recalls) { writer.pageTakes = .milliseconds(700) }
        return writer
    }

    private func makeGateway(_ name: String) -> SimulatedGateway {
        SimulatedGateway(name, number: nextConnection(), broker: broker, database: database)
    }

    private func makeIngest(_ name: String) -> SimulatedIngest {
        SimulatedIngest(name, number: nextConnection(), broker: broker)
    }

    private func makeValidator(_ name: String) -> SimulatedValidator {
        SimulatedValidator(name, number: nextConnection(), broker: broker, history: history)
    }

    func makeDevice(_ name: String, user: String? = nil) -> SimulatedDevice {
        let device = SimulatedDevice(
            name, instanceID: Self.instance.id.text, folder: folder.path,
            user: BoundUser(userID: user ?? "user-\(simulation.pick(1...2))", sessionID: newSession()),
            history: history,
            in: simulation
        ) { [unowned self] in gateways }
        device.forgets = plan.forgets
        (device.repeatedFrames, device.frameHoles) = (plan.repeatedFrames, plan.frameHoles)
        device.lies = name == Self.liar
        device.whenSessionInvalid = { [unowned self, unowned device] userID in
            simulation.after(simulation.pick(.milliseconds(100), .seconds(2))) { [unowned self] in
                guard device.user?.userID == userID else { return }
                device.bind(BoundUser(userID: userID, sessionID: newSession()))
            }
        }
        return device
    }

    func newSession() -> String {
        lastSession += 1
        return "session-\(lastSession)"
    }

    // MARK: The run

    /// Runs load with faults, healing and the checks.
    func run() {
        history.observe(PresenceEvent.disturbed)
        broker.noticeLoss = plan.noticeLoss
        database.refusals = plan.refusals
        database.lostAnswers = plan.lostAnswers
        for kind in FaultPlan.Kind.allCases { plan.rates[kind].map { schedule(kind, $0) } }
        simulation.every(.seconds(1)) { [unowned self] in
            database.replicate()
            return !isHealing
        }
        pushSoon()
        simulation.run(for: Self.loadLasts)
        heal()
        let isHealed = runUntilWhole()
        if isHealed, plan.endsCalmly { pushCalmly() }
        for device in devices + trialRun.devices where !device.isConnected {
            history.fault(.delivered, "\(device.id) has not reconnected")
        }
        trialRun.check()
        if simulation.eventCount >= Self.mostEvents { history.fault(.delivered, "the run does not end") }
        history.end(database.store)
        finish()
    }

    /// Runs until everything is delivered and confirmed, or until the time for healing is over. A commit that hangs is
    /// the last fault, so the time counts from its end.
    private func runUntilWhole() -> Bool {
        func run(for limit: Duration) -> Bool {
            simulation.run(for: limit) { [unowned self] in
                simulation.eventCount % 50 == 0 && isWhole || simulation.eventCount >= Self.mostEvents
            }
        }
        if run(for: Self.healsWithin) { return true }
        return run(for: max(.zero, database.lastHangEnded + Self.healsWithin - simulation.elapsed))
    }

    /// Pushes without faults: each push must reach all its devices, and a push for one device exactly one.
    private func pushCalmly() {
        history.observe(PresenceEvent.healed)
        // By then the gateways know the ended sessions, and all devices are registered again.
        simulation.run(for: .seconds(11))
        guard runUntilWhole() else { return }
        pushLiveAtOnce()
        for configuration in Self.configurations where configuration.kind != .device {
            for user in configuration.kind == .user ? ["user-1", "user-2"] : [""] {
                let isAway = configuration.isSingleDevice && !ownerIsThere(user)
                push(
                    configuration, to: user,
                    reach: !isBound(user) || isAway ? .optional : configuration.isSingleDevice ? .one : .everyone)
            }
        }
        for device in devices where !device.lies { push(Self.configurations[1], to: device.id) }
        _ = runUntilWhole()
    }

    /// Sends non-persistent pushes at the same time. All devices with open sessions must receive them.
    private func pushLiveAtOnce() {
        for user in ["user-1", "user-2"] {
            for number in 0..<6 {
                simulation.after(.milliseconds(3) * number) { [unowned self] in
                    push(Self.configurations[5], to: user, reach: .optional)
                }
            }
        }
        simulation.run(for: .seconds(3))
    }

    private func isBound(_ user: String) -> Bool { devices.contains { user.isEmpty || $0.user?.userID == user } }

    private func finish() {
        for gateway in gateways { gateway.kill() }
        for process in processes { process.kill() }
    }

    private func schedule(_ kind: FaultPlan.Kind, _ rate: Double) {
        // Exponential gaps, so that faults can also be close together.
        let gap = Duration.seconds(1) * (-log(1 - simulation.chance()) / rate)
        simulation.after(gap) { [unowned self] in
            guard !isHealing else { return }
            simulation.trace("fault", about: "\(kind)")
            faultCounts[kind, default: 0] += 1
            inject(kind)
            schedule(kind, rate)
        }
    }

    private func heal() {
        isHealing = true
        broker.noticeLoss = 0
        database.refusals = 0
        database.lostAnswers = 0
        for device in devices { (device.forgets, device.repeatedFrames, device.frameHoles) = (0, 0, 0) }
        simple?.forgets = 0
        for device in devices { device.endFaults() }
        trialRun.heal()
        simulation.after(.seconds(5)) { [unowned self] in leaveOwners() }
    }

    /// Single-device data waits for the user's owner (D8). Where the owner's device has another user now, the data is
    /// not owed.
    private func leaveOwners() {
        for user in ["user-1", "user-2"] where !ownerIsThere(user) {
            for configuration in Self.configurations where configuration.isSingleDevice {
                history.ownerIsAway(from: address(of: configuration, user))
            }
        }
    }

    private func ownerIsThere(_ user: String) -> Bool {
        let owner = database.store.owner(of: UserID(user), in: Self.instance.id)
        return devices.contains { $0.user?.userID == user && $0.id == owner?.text }
    }

    func address(of configuration: SyncConfiguration, _ target: String) -> ChannelAddress {
        ChannelAddress(
            target: TargetAddress(instanceID: Self.instance.id, kind: configuration.kind, target: target),
            bizType: configuration.bizType)
    }

    private var isWhole: Bool {
        openPushes == 0 && devices.allSatisfy(\.isConnected) && simple?.isConnected ?? true && trialRun.isWhole
            && database.waitingCommits == 0 && history.isSettled
    }

    // MARK: Load

    private func pushSoon() {
        simulation.after(simulation.pick(.milliseconds(10), .milliseconds(200))) { [unowned self] in
            guard !isHealing else { return }
            plan.trials.contains(.batches) && simulation.happens(0.15) ? pushBatch() : push()
            pushSoon()
        }
    }

    private func push() {
        let configuration = simulation.pick(Self.load)
        var target =
            switch configuration.kind {
            case .device: simulation.pick(devices.map(\.id) + (simple.map { [$0.id, $0.id] } ?? []))
            case .user: "user-\(simulation.pick(1...2))"
            case .globalUser, .globalDevice: ""
            }
        if plan.hasLiar, configuration.kind == .user, simulation.happens(0.1) { target = Self.liar }
        push(configuration, to: target)
    }

    func push(_ configuration: SyncConfiguration, to target: String, reach: HistoryReach? = nil) {
        let push = make(configuration, to: target, reach: reach)
        openPushes += 1
        attempt([push], left: 4)
        if plan.trials.contains(.recalls), reach == nil, simulation.happens(0.2) {
            recallSoon(push, after: simulation.pick(.milliseconds(10), .seconds(3)))
        }
    }

    /// Makes a push and recalls it after the delay.
    func pushAndRecall(_ configuration: SyncConfiguration, to target: String, after delay: Duration) {
        let push = make(configuration, to: target, reach: nil)
        openPushes += 1
        attempt([push], left: 4)
        recallSoon(push, after: delay)
    }

    /// Makes several pushes to one target in one call.
    private func pushBatch() {
        let configuration = Self.configurations[simulation.pick([0, 0, 1, 4, 6])]
        pushBatch(
            configuration,
            to: configuration.kind == .device ? simulation.pick(devices).id : "user-\(simulation.pick(1...2))")
    }

    func pushBatch(_ configuration: SyncConfiguration, to target: String) {
        let pushes = (0..<simulation.pick(2...6)).map { _ in make(configuration, to: target, reach: nil) }
        history.called(pushes.map(\.name))
        openPushes += pushes.count
        attempt(pushes, left: 6)
    }

    /// Creates a push; the caller sends it.
    private func make(
        _ configuration: SyncConfiguration, to target: String, reach: HistoryReach?
    ) -> SimulatedPush {
        lastPush += 1
        var usual: HistoryReach =
            switch configuration.bizType.text {
            case "SOLO", "VAULT": .anyone
            case "LATEST": .connected
            case "LIVE": .optional
            default: .everyone
            }
        var push = SimulatedPush(
            name: "push-\(lastPush)", address: address(of: configuration, target), configuration: configuration)
        var validity: Duration?
        if reach == nil, simulation.happens(0.04) {
            (push.targeting, usual) = (Targeting(operatingSystem: .iOS), .nobody)
        } else if reach == nil, simulation.happens(0.04) {
            validity = simulation.pick(.milliseconds(300), .seconds(6))
            usual = .optional
        } else if plan.trials.contains(.clocks), reach == nil, simulation.happens(0.3) {
            validity =
                simulation.happens(0.3)
                ? simulation.pick(.seconds(5), .seconds(60))
                : simulation.pick(.seconds(120), .seconds(7_200))
        }
        push.validUntil = validity.map { database.now + $0 }
        // The service need not send data that the liar has acknowledged, but its sync point must not pass data that was
        // not sent. A sync point also passes a push that expires soon.
        history.invoked(
            push.name, push.address, reach: target == Self.liar ? .optional : reach ?? usual,
            isOwed: (reach ?? usual).isOwed && validity.map { $0 > .seconds(100) } ?? true,
            validFor: validity)
        return push
    }

    /// The backend recalls a push, and repeats the recall until it has an answer.
    private func recallSoon(_ push: SimulatedPush, after delay: Duration) {
        simulation.after(delay) { [unowned self] in
            guard !isHealing, history.isAnswered(push.name) else { return }
            history.recallBegan(push.name)
            recall(push, left: 5)
        }
    }

    private func recall(_ push: SimulatedPush, left: Int) {
        guard left > 0 else { return }
        operation.recall(ThirdMessageID(push.name), of: push.address) { [unowned self] in
            history.recalled(push.name, in: database.store)
        }
        simulation.after(.seconds(2)) { [unowned self] in
            if !history.isRecalled(push.name) { recall(push, left: left - 1) }
        }
    }

    /// Makes more pushes to one channel than a page has.
    private func pushMany() {
        let (target, count) = ("user-\(simulation.pick(1...2))", simulation.pick(20...90))
        for number in 0..<count {
            simulation.after(.milliseconds(5) * number) { [unowned self] in push(Self.configurations[0], to: target) }
        }
    }

    /// Makes a backend's call, and repeats it with the same thirdMsgIds while the outcome is unknown.
    private func attempt(_ pushes: [SimulatedPush], left: Int) {
        guard left > 0, !pushes.isEmpty else {
            openPushes -= pushes.count
            return
        }
        let again = { [unowned self] (pushes: [SimulatedPush]) in
            simulation.after(simulation.pick(.milliseconds(50), .seconds(2))) { [unowned self] in
                attempt(pushes, left: left - 1)
            }
        }
        let there = ingests.filter(\.process.isAlive)
        guard !there.isEmpty else { return again(pushes) }
        for push in pushes { history.callBegan(with: push) }
        simulation.pick(there).submit(pushes.map(\.request), pushes[0].configuration) { [unowned self] outcomes in
            let open = zip(pushes, outcomes ?? []).filter { !isOver($0, $1) }.map(\.0)
            guard outcomes != nil else {
                for push in pushes { history.maybeStored(push.name) }
                return again(pushes)
            }
            if !open.isEmpty { again(open) }
        }
    }

    /// Handles the answer to one push. False: the backend sends the push again.
    private func isOver(_ push: SimulatedPush, _ outcome: PushOutcome) -> Bool {
        let name = push.name
        history.observePresence(by: outcome, of: push)
        switch outcome {
        case .stored(let id, online: false, _) where !push.configuration.isPersistent:
            history.notOnline(name, id)
        case .duplicate where !push.configuration.isPersistent:
            history.answerWasLost(of: name)
        case .stored(let id, _, _), .duplicate(let id):
            history.answered(name, id, in: database.store)
        case .notAttempted:
            // Some backends do not repeat a push that was not attempted.
            guard simulation.happens(0.2) else { return false }
        case .unknown:
            history.maybeStored(name)
            return false
        case .refused, .noConfiguration:
            history.fault(.attempted, "\(name) was refused")
        }
        openPushes -= 1
        return true
    }

    // MARK: Faults

    private func inject(_ kind: FaultPlan.Kind) {
        switch kind {
        case .writerDies: replace(\.writers, makeWriter) { $0.process.kill() }
        case .writerDiesAfterCommit: replace(\.writers, makeWriter) { $0.diesAfterCommit = true }
        case .writerPauses: simulation.pick(writers).process.pause(for: pause())
        case .gatewayDies: replace(\.gateways, makeGateway) { $0.kill() }
        case .gatewayPauses: simulation.pick(gateways).process.pause(for: pause())
        case .gatewayOutlivesLease: outliveLease()
        case .leaseForgotten: forgetLease()
        case .ingestDies: replace(\.ingests, makeIngest) { $0.kill() }
        case .ingestPauses: simulation.pick(ingests).process.pause(for: pause())
        case .validatorDies: replace(\.validators, makeValidator) { $0.process.kill() }
        case .brokerConnectionFalls: simulation.pick(processes).connection?.fall()
        case .brokerRestarts: restartBroker(losesDisk: false)
        case .brokerLosesDisk: restartBroker(losesDisk: true)
        case .queueDeleted:
            broker.delete(simulation.pick([CommandQueue.append, .session, .lease, .fetch, .ack]).rawValue)
        case .databaseRestarts: restartDatabase()
        case .databaseFailsOver: failOver()
        case .deviceResets: simulation.pick(devices).reset()
        case .deviceCutUp: simulation.pick(devices).cut(up: true, down: false, for: pause())
        case .deviceCutDown: simulation.pick(devices).cut(up: false, down: true, for: pause())
        case .appCrashes: simulation.pick(devices).crash()
        case .userSwitches: switchUser(simulation.pick(devices))
        case .sessionEnds: simulation.pick(devices).user.map { history.becameInvalid($0.sessionID) }
        case .sessionRevoked: simulation.pick(devices).user.map(revoke)
        case .manyPushes: pushMany()
        default: trialRun.inject(kind)
        }
    }

    /// Pauses a gateway for longer than its lease, and ends a session during the pause.
    private func outliveLease() {
        let length = simulation.pick(.seconds(9), .seconds(12))
        simulation.pick(gateways).process.pause(for: length)
        simulation.after(simulation.pick(.milliseconds(8_500), length)) { [unowned self] in
            simulation.pick(devices).user.map(revoke)
        }
    }

    /// Pauses a gateway for less than its lease. Meanwhile the database loses the lease record, and a session ends.
    private func forgetLease() {
        simulation.pick(gateways).process.pause(for: simulation.pick(.seconds(3), .milliseconds(4_500)))
        guard database.isUp else { return }
        database.stop()
        simulation.after(.milliseconds(100)) { [unowned self] in database.start() }
        simulation.after(simulation.pick(.milliseconds(1_500), .milliseconds(3_500))) { [unowned self] in
            simulation.pick(devices).user.map(revoke)
        }
    }

    func revoke(_ user: BoundUser) {
        history.becameInvalid(user.sessionID)
        operation.revoke(user, of: Self.instance.id) { [unowned self] in
            history.revoked(user.sessionID, in: database.store)
        }
    }

    private var processes: [SimulatedProcess] {
        [operation.process] + writers.map(\.process) + gateways.map(\.process) + ingests.map(\.process)
            + validators.map(\.process)
    }

    func pause() -> Duration { simulation.pick(.milliseconds(100), .seconds(10)) }

    /// Kills one process of a tier, at once or soon. Its supervisor starts another one after the death.
    private func replace<Tier>(
        _ tier: ReferenceWritableKeyPath<SimulatedService, [Tier]>, _ make: @escaping (String) -> Tier,
        _ kill: (Tier) -> Void
    ) where Tier: SimulatedTier {
        let index = simulation.pick(0...self[keyPath: tier].count - 1)
        let old = self[keyPath: tier][index]
        guard old.process.isAlive else { return }
        kill(old)
        simulation.every(simulation.pick(.milliseconds(200), .seconds(2))) { [unowned self] in
            guard !old.process.isAlive else { return true }
            if self[keyPath: tier][index] === old { self[keyPath: tier][index] = make(old.process.name) }
            return false
        }
    }

    private func restartBroker(losesDisk: Bool) {
        guard broker.isUp else { return }
        broker.stop(losesDisk: losesDisk)
        simulation.after(simulation.pick(.milliseconds(200), .seconds(5))) { [unowned self] in broker.start() }
    }

    private func restartDatabase() {
        guard database.isUp else { return }
        database.stop()
        simulation.after(simulation.pick(.milliseconds(100), .seconds(5))) { [unowned self] in database.start() }
    }

    func failOver() {
        guard database.failOver() else { return }
        history.failedOver(to: database.store)
        trialRun.failedOver()
    }

    private func switchUser(_ device: SimulatedDevice) {
        let user = simulation.happens(0.2) ? nil : "user-\(simulation.pick(1...2))"
        if device.lies { return }
        device.bind(user.map { BoundUser(userID: $0, sessionID: newSession()) })
        guard user == nil else { return }
        simulation.after(simulation.pick(.milliseconds(10), .seconds(3))) { [unowned self, unowned device] in
            guard device.user == nil else { return }
            device.bind(BoundUser(userID: "user-\(simulation.pick(1...2))", sessionID: newSession()))
        }
    }
}

extension HistoryReach {
    /// Whether no receiver's sync point may pass a push that the receiver was not sent.
    fileprivate var isOwed: Bool {
        switch self {
        case .everyone, .anyone, .device: true
        case .one, .connected, .optional, .nobody: false
        }
    }
}

/// A process of one kind.
protocol SimulatedTier: AnyObject {
    var process: SimulatedProcess { get }
}

extension SimulatedWriter: SimulatedTier {}
extension SimulatedGateway: SimulatedTier {}
extension SimulatedIngest: SimulatedTier {}
extension SimulatedValidator: SimulatedTier {}
