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
    private static let verdictLifetime = Duration.seconds(3)
    private static let configurations = [
        configuration("CHAT", .user, isMultiDevice: true), configuration("DEVICE", .device),
        configuration("CHECKED", .user, isMultiDevice: true, checksSession: true),
    ]
    /// How long a run is under load, and how long it may take to heal.
    private static let loadLasts = Duration.seconds(20)
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
    private var lastConnection: UInt64 = 0
    private var lastPush = 0
    private var lastSession = 0
    /// Pushes whose backends have not ended with them.
    private var openPushes = 0
    private var isHealing = false
    private(set) var faultCounts: [FaultPlan.Kind: Int] = [:]

    private static func configuration(
        _ bizType: String, _ kind: SyncModel.ChannelKind, isMultiDevice: Bool = false, checksSession: Bool = false
    ) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: instance.id, bizType: BizType(bizType), description: "", kind: kind,
            isMultiDevice: isMultiDevice, isPersistent: true, repush: .all, checksSession: checksSession,
            isOnline: true,
            verdictLifetime: checksSession ? verdictLifetime : nil)
    }

    /// - Parameters:
    ///   - folder: for the stores of the phones.
    ///   - keepsLog: whether what happens is kept as text.
    init(seed: UInt64, folder: URL, keepsLog: Bool = false) {
        let simulation = Simulation(seed: seed, keepsLog: keepsLog)
        self.simulation = simulation
        self.folder = folder
        plan = FaultPlan(simulation)
        history = History(simulation, configurations: Self.configurations)
        broker = SimulatedBroker(simulation)
        database = SimulatedDatabase(
            simulation, instances: [Self.instance], configurations: Self.configurations)
        for number in 1...simulation.pick(1...2) { writers.append(makeWriter("writer-\(number)")) }
        for number in 1...simulation.pick(1...3) { gateways.append(makeGateway("gateway-\(number)")) }
        for number in 1...simulation.pick(1...2) { ingests.append(makeIngest("ingest-\(number)")) }
        validators.append(makeValidator("validator-1"))
        for number in 1...simulation.pick(2...5) { devices.append(makeDevice("device-\(number)")) }
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

    private func makeDevice(_ name: String) -> SimulatedDevice {
        let device = SimulatedDevice(
            name, instanceID: Self.instance.id.text, folder: folder.path,
            user: BoundUser(userID: "user-\(simulation.pick(1...2))", sessionID: newSession()), history: history,
            in: simulation
        ) { [unowned self] in gateways }
        device.forgets = plan.forgets
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
        simulation.run(for: Self.healsWithin) { [unowned self] in simulation.eventCount % 50 == 0 && isWhole }
        for device in devices where !device.isConnected { history.fault(.delivered, "\(device.id) is not back") }
        history.end(database.store)
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
        for device in devices { device.forgets = 0 }
    }

    private var isWhole: Bool { openPushes == 0 && devices.allSatisfy(\.isConnected) && history.isSettled }

    // MARK: Load

    private func pushSoon() {
        simulation.after(simulation.pick(.milliseconds(10), .milliseconds(200))) { [unowned self] in
            guard !isHealing else { return }
            push()
            pushSoon()
        }
    }

    private func push() {
        lastPush += 1
        let name = "push-\(lastPush)"
        let configuration = simulation.pick(Self.configurations)
        let target =
            configuration.kind == .device ? simulation.pick(devices).id : "user-\(simulation.pick(1...2))"
        let address = ChannelAddress(
            target: TargetAddress(instanceID: Self.instance.id, kind: configuration.kind, target: target),
            bizType: configuration.bizType)
        history.invoked(name, address)
        openPushes += 1
        attempt(name, address, configuration, left: 4)
    }

    /// A backend's call, repeated with the same thirdMsgId while its outcome is not known.
    private func attempt(
        _ name: String, _ address: ChannelAddress, _ configuration: SyncConfiguration, left: Int
    ) {
        guard left > 0 else {
            openPushes -= 1
            return
        }
        let again = { [unowned self] in
            simulation.after(simulation.pick(.milliseconds(50), .seconds(2))) { [unowned self] in
                attempt(name, address, configuration, left: left - 1)
            }
        }
        guard
            let ingest = ingests.filter(\.process.isAlive).isEmpty
                ? nil : simulation.pick(ingests.filter(\.process.isAlive))
        else { return again() }
        let request = PushRequest(
            scope: .single, instanceID: address.target.instanceID, bizType: address.bizType,
            linkToken: address.target.target, thirdMessageID: ThirdMessageID(name),
            payload: Array(HistoryTarget(address).payload(of: name).utf8), isBinary: false, targeting: Targeting(),
            validUntil: nil)
        ingest.submit(request, configuration) { [unowned self] outcome in
            switch outcome {
            case .stored(let id, _), .duplicate(let id):
                history.answered(name, id, in: database.store)
                openPushes -= 1
            case .notAttempted:
                again()
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
        case .ingestDies: replace(\.ingests, makeIngest) { $0.kill() }
        case .ingestPauses: simulation.pick(ingests).process.pause(for: pause())
        case .validatorDies: replace(\.validators, makeValidator) { $0.process.kill() }
        case .brokerConnectionFalls: simulation.pick(processes).connection?.fall()
        case .brokerRestarts: restartBroker(losesDisk: false)
        case .brokerLosesDisk: restartBroker(losesDisk: true)
        case .queueDeleted: broker.delete(simulation.pick([CommandQueue.append, .session, .fetch, .ack]).rawValue)
        case .databaseRestarts: restartDatabase()
        case .databaseFailsOver: if database.failOver() { history.failedOver(to: database.store) }
        case .deviceResets: simulation.pick(devices).reset()
        case .deviceCutUp: simulation.pick(devices).cut(up: true, down: false, for: pause())
        case .deviceCutDown: simulation.pick(devices).cut(up: false, down: true, for: pause())
        case .appCrashes: simulation.pick(devices).crash()
        case .userSwitches: switchUser(simulation.pick(devices))
        case .sessionEnds: simulation.pick(devices).user.map { history.becameInvalid($0.sessionID) }
        }
    }

    private var processes: [SimulatedProcess] {
        writers.map(\.process) + gateways.map(\.process) + ingests.map(\.process) + validators.map(\.process)
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
