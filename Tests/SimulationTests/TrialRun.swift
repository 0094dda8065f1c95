import DeliveryHistory
import SyncModel

@testable import MobileSync

/// The devices, attackers and faults that only the trials of a run have.
final class TrialRun {
    /// This user has two devices. The session of one of them is invalid.
    private static let roamer = "roamer"
    /// This user has two devices. The app asks for a bind on the second one; the first one only reconnects.
    private static let mover = "mover"
    private static let victim = "victim"
    private static let mqttUser = "mqtt-user"
    private static let mostClockChange = Duration.seconds(7_200)

    private unowned let service: SimulatedService
    private(set) var devices: [SimulatedDevice] = []
    private var strangers: [SimulatedStranger] = []
    private var mqtt: SimulatedMQTTDevice?
    /// The second phone has become the mover's owner, and stays the owner.
    private var isMoved = false

    init(_ service: SimulatedService) { self.service = service }

    private var simulation: Simulation { service.simulation }
    private var history: History { service.history }
    private var trials: Set<FaultPlan.Trial> { service.plan.trials }

    var isWhole: Bool { devices.allSatisfy(\.isConnected) && mqtt?.isConnected ?? true && isRuled }

    private static func configuration(_ bizType: String) -> SyncConfiguration {
        guard let found = SimulatedService.configurations.first(where: { $0.bizType.text == bizType }) else {
            preconditionFailure("there is no \(bizType)")
        }
        return found
    }

    // MARK: Beginning and end

    func enter() {
        if trials.contains(.owners) { enterOwners() }
        if trials.contains(.strangers) { enterStrangers() }
        if trials.contains(.mqtt) { enterMQTT() }
        service.database.whenOwned = { [unowned self] user, device in owned(user, by: device) }
    }

    /// Ends all faults.
    func heal() {
        for device in devices { (device.forgets, device.repeatedFrames, device.frameHoles) = (0, 0, 0) }
        for device in devices { device.endFaults() }
        for stranger in strangers { stranger.stop() }
        mqtt?.isPrompt = true
    }

    func inject(_ kind: FaultPlan.Kind) {
        switch kind {
        case .clockJumps: jumpClock()
        case .databaseClockJumps: jumpDatabaseClock()
        case .channelHeld: hold()
        case .commitHangs: service.database.delayNextCommit(by: simulation.pick(.seconds(4), .seconds(40)))
        case .ruleChanges: changeRule()
        case .ruleIsLost: loseRule()
        case .thresholdBurst: pushMoreThanThreshold()
        case .recallAtOpening: recallAtOpening()
        case .mqttResets: mqtt?.reset()
        case .mqttSessionEnds: endMQTTSession()
        default: preconditionFailure("\(kind) is not a fault of a trial")
        }
    }

    // MARK: Clocks

    private func jumpClock() {
        let change = simulation.pick(.zero - Self.mostClockChange, Self.mostClockChange)
        if simulation.happens(0.5) {
            simulation.pick(service.gateways).process.wallClock.jump(by: change)
        } else {
            simulation.pick(service.devices).setClock(by: change)
        }
    }

    private func jumpDatabaseClock() {
        history.databaseClock(isRight: false)
        service.database.clock.jump(by: simulation.pick(.milliseconds(500), .seconds(8)))
        // After 10 s every process has received a reply with the new time.
        simulation.after(.seconds(10)) { [unowned self] in history.databaseClock(isRight: true) }
    }

    // MARK: Batches

    private func hold() {
        let configuration = Self.configuration(simulation.pick(["CHAT", "CHAT", "DEVICE", "SOLO", "LATEST"]))
        let target =
            configuration.kind == .device ? simulation.pick(service.devices).id : "user-\(simulation.pick(1...2))"
        let address = ChannelAddress(
            target: TargetAddress(instanceID: SimulatedService.instance.id, kind: configuration.kind, target: target),
            bizType: configuration.bizType)
        service.database.hold(address, for: simulation.pick(.seconds(1), .seconds(5)))
        service.pushBatch(configuration, to: target)
    }

    private func pushMoreThanThreshold() {
        let device = simulation.pick(service.devices)
        guard let user = device.user?.userID else { return }
        device.reset()
        for _ in 0..<simulation.pick(6...20) {
            simulation.after(simulation.pick(.milliseconds(50), .seconds(2))) { [unowned self] in
                if !service.isHealing { service.push(Self.configuration("LATEST"), to: user) }
            }
        }
    }

    // MARK: Recalls

    /// Reconnects a device and recalls pushes that were made meanwhile, while their pages are in flight or wait.
    private func recallAtOpening() {
        let device = simulation.pick(service.devices)
        guard let user = device.user?.userID, !device.lies else { return }
        device.reset()
        for bizType in ["CHAT", "TRUSTED", "CHECKED"] {
            service.pushAndRecall(
                Self.configuration(bizType), to: user,
                after: simulation.pick(.milliseconds(100), .milliseconds(1_500)))
        }
    }

    // MARK: Rules

    private func changeRule() {
        var rule = Self.configuration("RULES")
        rule.repush = .threshold(simulation.pick(1...1_000))
        rule.isOnline = simulation.happens(0.5)
        _ = service.database.change(rule)
    }

    /// A failover loses a change of a configuration, and another change follows before a gateway asks for the version.
    private func loseRule() {
        service.database.letStandbyLag(for: .milliseconds(1_300))
        changeRule()
        simulation.after(.milliseconds(1_100)) { [unowned self] in
            guard !service.isHealing else { return }
            simulation.pick(service.gateways).cutOffFromRules(for: simulation.pick(.seconds(1), .seconds(4)))
            service.failOver()
        }
        simulation.after(simulation.pick(.milliseconds(1_200), .seconds(2))) { [unowned self] in
            if !service.isHealing { changeRule() }
        }
    }

    /// Every gateway uses the newest control version.
    private var isRuled: Bool {
        guard trials.contains(.rules) else { return true }
        let version = service.database.store.control.version
        return service.gateways.allSatisfy { $0.rulesVersion == version }
    }

    func check() {
        guard trials.contains(.rules) else { return }
        for rule in service.database.store.control.configurations {
            for gateway in service.gateways where gateway.rule(rule.instanceID, rule.bizType) != rule {
                history.fault(
                    .governed, "\(gateway.process.name) does not use the newest configuration of \(rule.bizType)")
            }
        }
    }

    // MARK: Owners

    private func enterOwners() {
        let (valid, invalid) = (make("phone-new", Self.roamer), make("phone-old", Self.roamer))
        if let session = invalid.user?.sessionID { history.forged(session) }
        let (first, second) = (make("phone-first", Self.mover), make("phone-second", Self.mover))
        second.bind(nil)
        signIn(on: second, after: first)
        again(every: .seconds(3)) { invalid.reset() }
        again(every: .seconds(3)) { first.reset() }
        again(every: .seconds(6)) { valid.reset() }
        again(every: .milliseconds(600)) { [unowned self] in
            service.push(Self.configuration("VAULT"), to: Self.roamer, reach: .device("phone-new"))
            service.push(
                Self.configuration("SOLO"), to: Self.mover, reach: isMoved ? .device("phone-second") : .anyone)
        }
    }

    /// Binds the mover on the second phone when the first one knows that it is the owner. The client repeats an
    /// unconfirmed request for ownership, so an earlier bind could take effect late (DeviceProtocol.md, Bind).
    private func signIn(on second: SimulatedDevice, after first: SimulatedDevice) {
        simulation.after(simulation.pick(.seconds(1), .seconds(4))) { [weak self, unowned first, unowned second] in
            guard let self, !service.isHealing else { return }
            guard first.user?.request == nil else { return signIn(on: second, after: first) }
            second.bind(BoundUser(userID: Self.mover, sessionID: service.newSession()))
        }
    }

    /// After a failover that lost the change of the owner, the first phone stays the owner until the second one
    /// reconnects.
    func failedOver() {
        let owner = service.database.store.owner(of: UserID(Self.mover), in: SimulatedService.instance.id)
        guard isMoved, owner?.text != "phone-second" else { return }
        isMoved = false
        history.ownerIsForgotten(of: service.address(of: Self.configuration("SOLO"), Self.mover))
    }

    private func make(_ name: String, _ user: String) -> SimulatedDevice {
        let device = service.makeDevice(name, user: user)
        device.whenSessionInvalid = { _ in }
        devices.append(device)
        return device
    }

    /// Performs an action at random intervals of about this length until the faults end.
    private func again(every interval: Duration, _ perform: @escaping () -> Void) {
        simulation.after(simulation.pick(interval / 3, interval * 2)) { [weak self] in
            guard let self, !service.isHealing else { return }
            perform()
            again(every: interval, perform)
        }
    }

    private func owned(_ user: UserID, by device: DeviceID) {
        simulation.trace("owns", about: "\(device.text) \(user.text)")
        if user.text == Self.mover, device.text == "phone-second" { isMoved = true }
        if device.text == "phone-old" || device.text.hasPrefix("stranger") {
            history.fault(.owned, "\(device.text) owns \(user.text) without a valid session")
        } else if isMoved, user.text == Self.mover, device.text == "phone-first" {
            history.fault(.owned, "\(device.text) owns \(user.text) although its app did not ask for a bind")
        }
    }

    // MARK: Strangers

    private func enterStrangers() {
        let device = make("victim-1", Self.victim)
        again(every: .seconds(4)) { [unowned self] in
            device.crash(for: simulation.pick(.seconds(1), .seconds(5)))
        }
        let bizTypes = SimulatedService.configurations.filter { $0.kind == .user }.map(\.bizType.text)
        for number in 1...simulation.pick(1...2) {
            strangers.append(
                SimulatedStranger(
                    "stranger-\(number)", of: SimulatedService.instance, bizTypes: bizTypes,
                    victims: [Self.victim, "user-1"],
                    history: history,
                    in: simulation
                ) { [unowned self] in service.gateways })
        }
        again(every: .milliseconds(500)) { [unowned self] in
            let bizType = simulation.pick(["VAULT", "VAULT", "CHECKED", "TRUSTED"])
            service.push(
                Self.configuration(bizType), to: Self.victim, reach: bizType == "VAULT" ? .device("victim-1") : nil)
        }
    }

    // MARK: MQTT

    private func enterMQTT() {
        mqtt = SimulatedMQTTDevice(
            "mqtt", instanceID: SimulatedService.instance.id.text, userID: Self.mqttUser,
            sessionID: service.newSession(),
            history: history, in: simulation
        ) { [unowned self] in service.gateways }
        again(every: .milliseconds(150)) { [unowned self] in
            let bizType = simulation.pick(["TRUSTED", "CHECKED", "CHAT", "DEVICE"])
            service.push(Self.configuration(bizType), to: bizType == "DEVICE" ? "mqtt" : Self.mqttUser)
        }
    }

    /// The tenant ends the session of the MQTT client's user, and the user signs in with a new session.
    private func endMQTTSession() {
        guard let mqtt else { return }
        service.revoke(BoundUser(userID: Self.mqttUser, sessionID: mqtt.sessionID))
        simulation.after(simulation.pick(.milliseconds(500), .seconds(3))) { [unowned self, unowned mqtt] in
            mqtt.signIn(service.newSession())
        }
    }
}
