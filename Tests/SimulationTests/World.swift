import AMQP
import BusMessages
import DeliveryHistory
import Foundation
import SyncModel
import SyncStore

@testable import BackendCalls
@testable import MobileSync
@testable import ServiceKit

/// A whole service with its phones and backends in one thread: faults under load, then everything heals, and what was
/// promised must come true.
// Unchecked: see Simulation.
final class World: @unchecked Sendable {
    private static let instance = Instance(
        id: InstanceID("sim"), name: "sim", isEnabled: true, validatorURL: "http://tenant",
        verdictLifetime: .seconds(600))
    private static let configurations = [
        configuration("CHAT", .user, isMultiDevice: true), configuration("DEVICE", .device),
        configuration("CHECKED", .user, isMultiDevice: true, checksSession: true, lifetime: .seconds(3)),
        configuration("TRUSTED", .user, isMultiDevice: true, checksSession: true), configuration("SOLO", .user),
        configuration("LIVE", .user, isMultiDevice: true, isPersistent: false),
        configuration("LATEST", .user, isMultiDevice: true, repush: .threshold(3)),
        configuration("NEWS", .globalUser, isMultiDevice: true, isImmediate: true),
    ]
    /// How often each of them is pushed to.
    private static let load = [0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7].map { configurations[$0] }
    private static let liar = "liar"
    /// A run with more events than this comes to no rest.
    private static let mostEvents = 1_000_000
    /// How long a run is under load, and how long it may take to heal.
    private static let loadLasts = Duration.seconds(12)
    private static let healsWithin = Duration.seconds(60)

    let simulation: Simulation
    let history: History
    private let plan: FaultPlan
    private let broker: SimulatedBroker
    private let database: SimulatedDatabase
    private let folder: URL
    private var writers: [SimulatedWriter] = []
    private var gateways: [SimulatedGateway] = []
    private var ingests: [SimulatedIngest] = []
    private var validators: [SimulatedValidator] = []
    private var devices: [SimulatedDevice] = []
    private var simple: SimulatedSimpleDevice?
    private let operation: SimulatedOperator
    private var lastConnection: UInt64 = 0
    private var lastPush = 0
    private var lastSession = 0
    /// Pushes whose backends have not ended with them.
    private var openPushes = 0
    private var isHealing = false
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
    ///   - folder: for the stores of the phones.
    ///   - keepsLog: whether what happens is kept as text.
    init(seed: UInt64, folder: URL, keepsLog: Bool = false) {
        let simulation = Simulation(seed: seed, keepsLog: keepsLog)
        self.simulation = simulation
        self.folder = folder
        plan = FaultPlan(simulation)
        history = History(simulation, instance: Self.instance, configurations: Self.configurations)
        broker = SimulatedBroker(simulation)
        database = SimulatedDatabase(
            simulation, instances: [Self.instance], configurations: Self.configurations)
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
    }

    // MARK: Parts

    private func nextConnection() -> UInt64 {
        lastConnection += 1
        return lastConnection
    }

    private func makeWriter(_ name: String) -> SimulatedWriter {
        SimulatedWriter(name, number: nextConnection(), database: database, broker: broker)
    }

    private func makeGateway(_ name: String) -> SimulatedGateway {
        var snapshot = Mss_Bus_V1_Snapshot()
        snapshot.version = 1
        snapshot.instances = [Self.instance.bus]
        snapshot.configurations = Self.configurations.map(\.bus)
        return SimulatedGateway(name, number: nextConnection(), broker: broker, control: snapshot)
    }

    private func makeIngest(_ name: String) -> SimulatedIngest {
        SimulatedIngest(name, number: nextConnection(), broker: broker)
    }

    private func makeValidator(_ name: String) -> SimulatedValidator {
        SimulatedValidator(name, number: nextConnection(), broker: broker, history: history)
    }

    private func makeDevice(_ name: String, user: String? = nil) -> SimulatedDevice {
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

    private func newSession() -> String {
        lastSession += 1
        return "session-\(lastSession)"
    }

    // MARK: The run

    /// Runs the whole of it.
    func run() {
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
        let isHealed = settle()
        if isHealed, plan.endsCalmly { pushCalmly() }
        for device in devices where !device.isConnected { history.fault(.delivered, "\(device.id) is not back") }
        if simulation.eventCount >= Self.mostEvents { history.fault(.delivered, "it comes to no rest") }
        history.end(database.store)
        finish()
    }

    /// Everything comes to where it was promised.
    private func settle() -> Bool {
        simulation.run(for: Self.healsWithin) { [unowned self] in
            simulation.eventCount % 50 == 0 && isWhole || simulation.eventCount >= Self.mostEvents
        }
    }

    /// Nothing fails any more: each push reaches whom it is for, and where one device is to have it, one.
    private func pushCalmly() {
        // Sessions that ended lately have been found out, and everybody is registered again.
        simulation.run(for: .seconds(10))
        guard settle() else { return }
        for configuration in Self.configurations where configuration.kind != .device {
            for user in configuration.kind == .user ? ["user-1", "user-2"] : [""] {
                push(
                    configuration, to: user,
                    reach: configuration.isSingleDevice ? .one : isBound(user) ? .everyone : .optional)
            }
        }
        for device in devices where !device.lies { push(Self.configurations[1], to: device.id) }
        _ = settle()
    }

    private func isBound(_ user: String) -> Bool { devices.contains { user.isEmpty || $0.user?.userID == user } }

    private func finish() {
        for gateway in gateways { gateway.kill() }
        for process in processes { process.kill() }
    }

    private func schedule(_ kind: FaultPlan.Kind, _ rate: Double) {
        // Exponential gaps, so that faults also come close together.
        let gap = Duration.seconds(1) * (-log(1 - simulation.chance()) / rate)
        simulation.after(gap) { [unowned self] in
            guard !isHealing else { return }
            simulation.note("fault", about: "\(kind)")
            faultCounts[kind, default: 0] += 1
            happen(kind)
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
        simulation.after(.seconds(5)) { [unowned self] in findOwners() }
    }

    /// Data of which a user has one copy waits for the user's owner (spec D8): where that device now is another user's,
    /// the user signs in anew on one that is there.
    private func findOwners() {
        for user in ["user-1", "user-2"] {
            let there = devices.filter { $0.user?.userID == user }
            let owner = database.store.owner(of: UserID(user), in: Self.instance.id)
            guard let first = there.first, !there.contains(where: { $0.id == owner?.text }) else { continue }
            first.bind(BoundUser(userID: user, sessionID: newSession()))
        }
    }

    private var isWhole: Bool {
        openPushes == 0 && devices.allSatisfy(\.isConnected) && simple?.isConnected ?? true && history.isSettled
    }

    // MARK: Load

    private func pushSoon() {
        simulation.after(simulation.pick(.milliseconds(10), .milliseconds(200))) { [unowned self] in
            guard !isHealing else { return }
            push()
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

    private func push(_ configuration: SyncConfiguration, to target: String, reach: HistoryReach? = nil) {
        lastPush += 1
        let address = ChannelAddress(
            target: TargetAddress(instanceID: Self.instance.id, kind: configuration.kind, target: target),
            bizType: configuration.bizType)
        var usual: HistoryReach =
            switch configuration.bizType.text {
            case "SOLO": .anyone
            case "LIVE", "LATEST": .optional
            default: .everyone
            }
        var push = SimulatedPush(name: "push-\(lastPush)", address: address, configuration: configuration)
        if reach == nil, simulation.happens(0.04) {
            (push.targeting, usual) = (Targeting(operatingSystem: .iOS), .nobody)
        } else if reach == nil, simulation.happens(0.04) {
            let validity = simulation.pick(.milliseconds(300), .seconds(6))
            (push.validUntil, usual) = (simulation.wallTime + validity, .optional)
        }
        // What a liar says that it has it need not be given; past what it was not sent it may not be moved.
        history.invoked(
            push.name, address, reach: target == Self.liar ? .optional : reach ?? usual,
            isOwed: [.everyone, .anyone].contains(reach ?? usual))
        openPushes += 1
        attempt(push, left: 4)
    }

    /// Many pushes to one channel, more than a page has.
    private func pushMany() {
        let (target, count) = ("user-\(simulation.pick(1...2))", simulation.pick(20...90))
        for number in 0..<count {
            simulation.after(.milliseconds(5) * number) { [unowned self] in push(Self.configurations[0], to: target) }
        }
    }

    /// A backend's call, repeated with the same thirdMsgId while its outcome is not known.
    private func attempt(_ push: SimulatedPush, left: Int) {
        guard left > 0 else {
            openPushes -= 1
            return
        }
        let again = { [unowned self] in
            simulation.after(simulation.pick(.milliseconds(50), .seconds(2))) { [unowned self] in
                attempt(push, left: left - 1)
            }
        }
        guard
            let ingest = ingests.filter(\.process.isAlive).isEmpty
                ? nil : simulation.pick(ingests.filter(\.process.isAlive))
        else { return again() }
        let name = push.name
        ingest.submit(push.request, push.configuration) { [unowned self] outcome in
            switch outcome {
            case .stored(let id, online: false) where !push.configuration.isPersistent:
                history.notOnline(name, id)
                openPushes -= 1
            case .duplicate where !push.configuration.isPersistent:
                history.lostTrack(of: name)
                openPushes -= 1
            case .stored(let id, _), .duplicate(let id), .ended(let id):
                history.answered(name, id, in: database.store)
                openPushes -= 1
            case .notAttempted:
                // Some leave it at that: nothing was done.
                if simulation.happens(0.2) { openPushes -= 1 } else { again() }
            case .unknown, nil:
                history.maybeStored(name)
                again()
            case .refused, .noConfiguration:
                history.fault(.attempted, "\(name) was refused")
            }
        }
    }

    // MARK: Faults

    private func happen(_ kind: FaultPlan.Kind) {
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
        case .databaseFailsOver: if database.failOver() { history.failedOver(to: database.store) }
        case .deviceResets: simulation.pick(devices).reset()
        case .deviceCutUp: simulation.pick(devices).cut(up: true, down: false, for: pause())
        case .deviceCutDown: simulation.pick(devices).cut(up: false, down: true, for: pause())
        case .appCrashes: simulation.pick(devices).crash()
        case .userSwitches: switchUser(simulation.pick(devices))
        case .sessionEnds: simulation.pick(devices).user.map { history.becameInvalid($0.sessionID) }
        case .sessionRevoked: simulation.pick(devices).user.map(revoke)
        case .manyPushes: pushMany()
        }
    }

    /// A gateway stands still until its lease is over, and before it goes on a session is ended without it.
    private func outliveLease() {
        let length = simulation.pick(.seconds(9), .seconds(12))
        simulation.pick(gateways).process.pause(for: length)
        simulation.after(simulation.pick(.milliseconds(8_500), length)) { [unowned self] in
            simulation.pick(devices).user.map(revoke)
        }
    }

    /// A gateway stands still, though not longer than its lease holds; the database loses it from its record, and a
    /// session is ended meanwhile.
    private func forgetLease() {
        simulation.pick(gateways).process.pause(for: simulation.pick(.seconds(3), .milliseconds(4_500)))
        guard database.isUp else { return }
        database.stop()
        simulation.after(.milliseconds(100)) { [unowned self] in database.start() }
        simulation.after(simulation.pick(.milliseconds(1_500), .milliseconds(3_500))) { [unowned self] in
            simulation.pick(devices).user.map(revoke)
        }
    }

    private func revoke(_ user: BoundUser) {
        history.becameInvalid(user.sessionID)
        operation.revoke(user, of: Self.instance.id) { [unowned self] in
            history.revoked(user.sessionID, in: database.store)
        }
    }

    private var processes: [SimulatedProcess] {
        [operation.process] + writers.map(\.process) + gateways.map(\.process) + ingests.map(\.process)
            + validators.map(\.process)
    }

    private func pause() -> Duration { simulation.pick(.milliseconds(100), .seconds(10)) }

    /// One of a tier dies, now or soon; its supervisor starts another once it is dead.
    private func replace<Tier>(
        _ tier: ReferenceWritableKeyPath<World, [Tier]>, _ make: @escaping (String) -> Tier, _ kill: (Tier) -> Void
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

/// A process of one kind.
protocol SimulatedTier: AnyObject {
    var process: SimulatedProcess { get }
}

extension SimulatedWriter: SimulatedTier {}
extension SimulatedGateway: SimulatedTier {}
extension SimulatedIngest: SimulatedTier {}
extension SimulatedValidator: SimulatedTier {}
