import DeliveryHistory
import SyncModel

@testable import MobileSync

/// The devices and strangers of a run's trials, and what happens to them.
final class Cast {
    /// Of two devices of this user the session of one is invalid.
    private static let roamer = "roamer"
    /// The app of one device of this user asked for its bind last; the other only connects again and again.
    private static let mover = "mover"
    private static let victim = "victim"
    private static let mqttUser = "mqtt-user"
    private static let mostClockChange = Duration.seconds(7_200)

    private unowned let world: World
    private(set) var devices: [SimulatedDevice] = []
    private var strangers: [SimulatedStranger] = []
    private var mqtt: SimulatedMQTTDevice?
    /// The mover's ownership has come to the second phone: it keeps it.
    private var isMoved = false

    init(_ world: World) { self.world = world }

    private var simulation: Simulation { world.simulation }
    private var history: History { world.history }
    private var trials: Set<FaultPlan.Trial> { world.plan.trials }

    var isWhole: Bool { devices.allSatisfy(\.isConnected) && mqtt?.isConnected ?? true && isRuled }

    private static func configuration(_ bizType: String) -> SyncConfiguration {
        guard let found = World.configurations.first(where: { $0.bizType.text == bizType }) else {
            preconditionFailure("there is no \(bizType)")
        }
        return found
    }

    // MARK: Beginning and end

    func enter() {
        if trials.contains(.owners) { enterOwners() }
        if trials.contains(.strangers) { enterStrangers() }
        if trials.contains(.mqtt) { enterMQTT() }
        world.database.whenOwned = { [unowned self] user, device in owned(user, by: device) }
    }

    /// Nothing fails any more.
    func heal() {
        for device in devices { (device.forgets, device.repeatedFrames, device.frameHoles) = (0, 0, 0) }
        for device in devices { device.endFaults() }
        for stranger in strangers { stranger.stop() }
        mqtt?.isPrompt = true
    }

    func happen(_ kind: FaultPlan.Kind) {
        switch kind {
        case .clockJumps: jumpClock()
        case .databaseClockJumps: jumpDatabaseClock()
        case .channelHeld: hold()
        case .commitHangs: world.database.delayNextCommit(by: simulation.pick(.seconds(4), .seconds(40)))
        case .ruleChanges: changeRule()
        case .ruleIsLost: loseRule()
        case .thresholdBurst: pushMoreThanThreshold()
        case .recallAtOpening: recallAtOpening()
        case .mqttResets: mqtt?.reset()
        case .mqttSessionEnds: endMQTTSession()
        default: preconditionFailure("\(kind) is no fault of a trial")
        }
    }

    // MARK: Clocks

    private func jumpClock() {
        let change = simulation.pick(.zero - Self.mostClockChange, Self.mostClockChange)
        if simulation.happens(0.5) {
            simulation.pick(world.gateways).process.wallClock.jump(by: change)
        } else {
            simulation.pick(world.devices).setClock(by: change)
        }
    }

    private func jumpDatabaseClock() {
        history.databaseClock(isRight: false)
        world.database.clock.jump(by: simulation.pick(.milliseconds(500), .seconds(8)))
        // By then every process has had a reply.
        simulation.after(.seconds(10)) { [unowned self] in history.databaseClock(isRight: true) }
    }

    // MARK: Batches

    private func hold() {
        let configuration = Self.configuration(simulation.pick(["CHAT", "CHAT", "DEVICE", "SOLO", "LATEST"]))
        let target =
            configuration.kind == .device ? simulation.pick(world.devices).id : "user-\(simulation.pick(1...2))"
        let address = ChannelAddress(
            target: TargetAddress(instanceID: World.instance.id, kind: configuration.kind, target: target),
            bizType: configuration.bizType)
        world.database.hold(address, for: simulation.pick(.seconds(1), .seconds(5)))
        world.pushBatch(configuration, to: target)
    }

    private func pushMoreThanThreshold() {
        let device = simulation.pick(world.devices)
        guard let user = device.user?.userID else { return }
        device.reset()
        for _ in 0..<simulation.pick(6...20) {
            simulation.after(simulation.pick(.milliseconds(50), .seconds(2))) { [unowned self] in
                if !world.isHealing { world.push(Self.configuration("LATEST"), to: user) }
            }
        }
    }

    // MARK: Recalls

    /// A device connects again, and what was pushed meanwhile is recalled while its pages are on their way or wait for
    /// one another.
    private func recallAtOpening() {
        let device = simulation.pick(world.devices)
        guard let user = device.user?.userID, !device.lies else { return }
        device.reset()
        for bizType in ["CHAT", "TRUSTED", "CHECKED"] {
            world.pushAndRecall(
                Self.configuration(bizType), to: user,
                after: simulation.pick(.milliseconds(100), .milliseconds(1_500)))
        }
    }

    // MARK: Rules

    private func changeRule() {
        var rule = Self.configuration("RULES")
        rule.repush = .threshold(simulation.pick(1...1_000))
        rule.isOnline = simulation.happens(0.5)
        _ = world.database.change(rule)
    }

    /// A change of a rule is lost with the primary, and another one follows before a gateway asks again.
    private func loseRule() {
        world.database.letStandbyLag(for: .milliseconds(1_300))
        changeRule()
        simulation.after(.milliseconds(1_100)) { [unowned self] in
            guard !world.isHealing else { return }
            simulation.pick(world.gateways).cutOffFromRules(for: simulation.pick(.seconds(1), .seconds(4)))
            world.failOver()
        }
        simulation.after(simulation.pick(.milliseconds(1_200), .seconds(2))) { [unowned self] in
            if !world.isHealing { changeRule() }
        }
    }

    /// Every gateway goes by the rules in force.
    private var isRuled: Bool {
        guard trials.contains(.rules) else { return true }
        let version = world.database.store.control.version
        return world.gateways.allSatisfy { $0.rulesVersion == version }
    }

    func check() {
        guard trials.contains(.rules) else { return }
        for rule in world.database.store.control.configurations {
            for gateway in world.gateways where gateway.rule(rule.instanceID, rule.bizType) != rule {
                history.fault(
                    .governed, "\(gateway.process.name) does not go by the rules in force for \(rule.bizType)")
            }
        }
    }

    // MARK: Owners

    private func enterOwners() {
        let (valid, invalid) = (make("phone-new", Self.roamer), make("phone-old", Self.roamer))
        if let session = invalid.user?.sessionID { history.madeUp(session) }
        let (first, second) = (make("phone-first", Self.mover), make("phone-second", Self.mover))
        second.bind(nil)
        signIn(on: second, after: first)
        again(every: .seconds(3)) { invalid.reset() }
        again(every: .seconds(3)) { first.reset() }
        again(every: .seconds(6)) { valid.reset() }
        again(every: .milliseconds(600)) { [unowned self] in
            world.push(Self.configuration("VAULT"), to: Self.roamer, reach: .device("phone-new"))
            world.push(
                Self.configuration("SOLO"), to: Self.mover, reach: isMoved ? .device("phone-second") : .anyone)
        }
    }

    /// The mover signs in on the second phone once the first one knows that it is the owner: a request that no gateway
    /// has confirmed is repeated, so it may take effect late (DeviceProtocol.md, Bind).
    private func signIn(on second: SimulatedDevice, after first: SimulatedDevice) {
        simulation.after(simulation.pick(.seconds(1), .seconds(4))) { [weak self, unowned first, unowned second] in
            guard let self, !world.isHealing else { return }
            guard first.user?.request == nil else { return signIn(on: second, after: first) }
            second.bind(BoundUser(userID: Self.mover, sessionID: world.newSession()))
        }
    }

    /// A standby has taken over that may lack the move: until the second phone has connected again, the first one owns.
    func failedOver() {
        let owner = world.database.store.owner(of: UserID(Self.mover), in: World.instance.id)
        guard isMoved, owner?.text != "phone-second" else { return }
        isMoved = false
        history.ownerIsForgotten(of: world.address(of: Self.configuration("SOLO"), Self.mover))
    }

    private func make(_ name: String, _ user: String) -> SimulatedDevice {
        let device = world.makeDevice(name, user: user)
        device.whenSessionInvalid = { _ in }
        devices.append(device)
        return device
    }

    /// Does something again and again, about as often, until everything heals.
    private func again(every interval: Duration, _ perform: @escaping () -> Void) {
        simulation.after(simulation.pick(interval / 3, interval * 2)) { [weak self] in
            guard let self, !world.isHealing else { return }
            perform()
            again(every: interval, perform)
        }
    }

    private func owned(_ user: UserID, by device: DeviceID) {
        simulation.note("owns", about: "\(device.text) \(user.text)")
        if user.text == Self.mover, device.text == "phone-second" { isMoved = true }
        if device.text == "phone-old" || device.text.hasPrefix("stranger") {
            history.fault(.owned, "\(device.text) owns \(user.text) without a valid session")
        } else if isMoved, user.text == Self.mover, device.text == "phone-first" {
            history.fault(.owned, "\(device.text) owns \(user.text), and its app did not ask for that")
        }
    }

    // MARK: Strangers

    private func enterStrangers() {
        let device = make("victim-1", Self.victim)
        again(every: .seconds(4)) { [unowned self] in
            device.crash(for: simulation.pick(.seconds(1), .seconds(5)))
        }
        let bizTypes = World.configurations.filter { $0.kind == .user }.map(\.bizType.text)
        for number in 1...simulation.pick(1...2) {
            strangers.append(
                SimulatedStranger(
                    "stranger-\(number)", of: World.instance, bizTypes: bizTypes, victims: [Self.victim, "user-1"],
                    history: history,
                    in: simulation
                ) { [unowned self] in world.gateways })
        }
        again(every: .milliseconds(500)) { [unowned self] in
            let bizType = simulation.pick(["VAULT", "VAULT", "CHECKED", "TRUSTED"])
            world.push(
                Self.configuration(bizType), to: Self.victim, reach: bizType == "VAULT" ? .device("victim-1") : nil)
        }
    }

    // MARK: MQTT

    private func enterMQTT() {
        mqtt = SimulatedMQTTDevice(
            "mqtt", instanceID: World.instance.id.text, userID: Self.mqttUser, sessionID: world.newSession(),
            history: history, in: simulation
        ) { [unowned self] in world.gateways }
        again(every: .milliseconds(150)) { [unowned self] in
            let bizType = simulation.pick(["TRUSTED", "CHECKED", "CHAT", "DEVICE"])
            world.push(Self.configuration(bizType), to: bizType == "DEVICE" ? "mqtt" : Self.mqttUser)
        }
    }

    /// The tenant ends the session of the MQTT client's user, who signs in anew.
    private func endMQTTSession() {
        guard let mqtt else { return }
        world.revoke(BoundUser(userID: Self.mqttUser, sessionID: mqtt.sessionID))
        simulation.after(simulation.pick(.milliseconds(500), .seconds(3))) { [unowned self, unowned mqtt] in
            mqtt.signIn(world.newSession())
        }
    }
}
