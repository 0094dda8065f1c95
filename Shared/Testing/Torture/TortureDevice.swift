import DeliveryHistory
import Foundation
import MobileSync
import Synchronization

/// A phone of a torture run. Its app has a client library and a local store. The app sometimes fails to confirm. It
/// dies at times and restarts, sometimes with another user.
final class TortureDevice: Sendable {
    /// Average lifetime of an app.
    private static let life = Duration.seconds(120)
    /// Few apps are Java apps, so these die more often.
    private static let lifeOfJava = Duration.seconds(30)
    static let longestLife = life * 2
    /// One in this many oplogs is not confirmed at its first hand-out.
    private static let forgetsEvery = 200
    /// One in this many starts binds another user.
    private static let switchesEvery = 10
    /// One in this many devices has a wrong clock.
    private static let wrongClocksEvery = 7
    /// One in this many devices of an instance has a Java app, if the run has Java apps. The first one is among the
    /// first devices: of each instance another one, so that their users and clocks differ.
    private static let javaAppsEvery = 40
    /// Each start of a Java app costs about half a second of processor time.
    private static let mostJavaApps = 3
    /// Few entities, so that a user's devices change the same ones.
    private static let entitiesPerUser = 4
    /// Seconds for which a connection must stay open before a sign-in counts as complete. No fault holds frames for
    /// longer, so the client has received everything that the service sent.
    private static let settledAfter = 8

    /// How far the service has executed the app's last sign-in, as far as the client can see.
    private struct SignIn {
        /// The client has an open session.
        var isOpen = false
        /// Data that needs a valid verdict has arrived.
        var hasVerdict = false
        /// Number of seconds in which both conditions held.
        var seconds = 0
    }

    private let world: TortureWorld
    private let instance: String
    private let number: Int
    private let folder: URL
    private let random: SeededDraws
    private let session = Mutex("")
    private let lastSignIn = Mutex(SignIn())
    /// The running app, and its user.
    private let living = Mutex<(app: any TortureApp, user: String)?>(nil)
    /// Whether the running app has received its backlog.
    private let isPresent = Mutex(false)

    init(_ world: TortureWorld, instance: String, number: Int, folder: URL, seed: UInt64) {
        self.world = world
        self.instance = instance
        self.number = number
        self.folder = folder
        random = SeededDraws(seed: seed)
    }

    private var device: String { "device-\(number)" }
    private var name: String { TortureWorld.name(instance, device) }

    private var isJava: Bool {
        world.javaCommand != nil && number < Self.javaAppsEvery * Self.mostJavaApps
            && number % Self.javaAppsEvery == TortureWorld.instances.firstIndex(of: instance)
    }

    /// Ends the user session at the tenant, and in half of the cases revokes it. The app then binds a new session.
    func endSession() async {
        let ended = session.withLock { $0 }
        guard !ended.isEmpty, (try? await world.stack.endSession(ended)) != nil else { return }
        world.count("sessions ended")
        guard random.draw(0..<2) == 0, let user = living.withLock({ $0?.user }) else { return }
        if await world.api.revoke(ended, of: user, in: instance, api: random.draw(0..<2))?.success == true {
            world.count("sessions revoked")
        }
    }

    /// Runs apps one after another until the run is over.
    func run() async {
        var user = number / TortureWorld.devicesPerUser
        // Spreads the starts.
        await random.pause(0..<10_000)
        while world.phase != .over, !Task.isCancelled {
            do {
                try await live(as: "user-\(user)")
            } catch {
                addFault(.delivered, "the app of \(name) stopped: \(error)")
                return
            }
            guard world.phase != .over else { return }
            world.history.observe(.crashed(device: name))
            world.history.observe(OwnerChecker.Event.died(device: name))
            world.count(isJava ? "Java apps killed" : "apps died")
            world.recordStatus("died", of: name)
            // The app changes its user only without open operations, since their results go to the former user.
            let isFree = world.history.operations { checker, _ in checker.open(of: name) } == 0
            if isFree, random.draw(0..<Self.switchesEvery) == 0 { user = random.draw(0..<world.usersPerInstance) }
            await random.pause(0..<3_000)
        }
    }

    /// Runs one app from its start to its death.
    private func live(as user: String) async throws {
        let app = try makeApp()
        world.history.observe(.arrived(device: name, instance: instance, user: user))
        try signIn(user, app)
        world.history.observe(.bound(device: name, instance: instance, user: user))
        living.withLock { $0 = (app, user) }
        defer {
            living.withLock { $0 = nil }
            setPresent(false)
            setOpen(false)
            world.history.observe(PresenceEvent.left(device: name))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [self] in try await app.run(on: self) }
            group.addTask { [self] in
                await waitForDeath()
                // From now on no operation is submitted, and no event opens the session again.
                living.withLock { $0 = nil }
                // Recorded before the connection ends, because the service can notice that at once.
                setOpen(false)
                try await app.end()
            }
            for try await _ in group {}
        }
    }

    private func makeApp() throws -> any TortureApp {
        let stack = world.stack
        // Days before or after the correct time.
        let clockOffset =
            number.isMultiple(of: Self.wrongClocksEvery) ? .seconds(86_400) * (number % 5 - 2) : Duration.zero
        let start = TortureAppStart(
            port: stack.gateways[random.draw(0..<stack.gateways.count)], instance: instance, device: device,
            store: folder.appending(path: "\(instance)-\(number).sqlite"),
            certificateAuthority: stack.certificateAuthority, clockOffset: clockOffset)
        guard isJava, let command = world.javaCommand else { return try TortureSwiftApp(start) }
        return try TortureJavaApp(
            start, command: command, usesWebSocket: random.draw(0..<2) == 0,
            log: stack.folder.appending(path: "java-app-\(instance)-\(device).log"))
    }

    /// Handles a change of the app's connection or session.
    func handle(_ event: TortureAppEvent) throws {
        world.recordStatus("\(event)", of: name)
        switch event {
        case .caughtUp(let user):
            guard let user, living.withLock({ $0?.user }) == user else { return }
            setPresent(true)
            setOpen(true)
        case .disconnected: setOpen(false)
        case .sessionInvalid:
            guard let (app, user) = living.withLock({ $0 }) else { return }
            try signIn(user, app)
        case .other: break
        }
    }

    private func setPresent(_ isPresent: Bool) {
        let isChanged = self.isPresent.withLock { before in
            defer { before = isPresent }
            return before != isPresent
        }
        if isChanged { world.changePresent(by: isPresent ? 1 : -1) }
    }

    private func signIn(_ user: String, _ app: any TortureApp) throws {
        let new = "session-\(world.next())"
        session.withLock { $0 = new }
        // Data in flight for the former bind is dropped.
        setOpen(false)
        lastSignIn.withLock { $0 = SignIn() }
        world.history.observe(OwnerChecker.Event.signedIn(device: name, user: TortureWorld.name(instance, user)))
        try app.bind(user: user, session: new)
    }

    /// Records that the session opened or that the connection was lost.
    private func setOpen(_ isOpen: Bool) {
        let isChanged = lastSignIn.withLock { signIn in
            defer { signIn.isOpen = isOpen }
            return signIn.isOpen != isOpen
        }
        if isChanged { world.history.observe(isOpen ? PresenceEvent.opened(device: name) : .lost(device: name)) }
    }

    /// Counts a second towards a complete sign-in. Called once a second.
    private func countSignInSecond() {
        let isSettled = lastSignIn.withLock { signIn in
            let counts = signIn.isOpen && (signIn.hasVerdict || !TortureWorld.isForged(instance))
            signIn.seconds = counts ? signIn.seconds + 1 : 0
            return signIn.seconds == Self.settledAfter
        }
        if isSettled { world.history.observe(OwnerChecker.Event.settled(device: name)) }
    }

    /// Returns when the app dies: after some time under load, otherwise at the end of the run.
    private func waitForDeath() async {
        let milliseconds = Int((isJava ? Self.lifeOfJava : Self.life) / .milliseconds(1))
        var left = Duration.milliseconds(random.draw(0..<milliseconds * 2))
        while !Task.isCancelled, world.phase != .over {
            try? await Task.sleep(for: .seconds(1))
            countSignInSecond()
            guard world.phase == .loaded else { continue }
            left -= .seconds(1)
            if left <= .zero { return }
        }
    }

    // MARK: Operations

    /// Submits operations of the user, online or offline.
    ///
    /// - Returns: the number of submitted operations, or 1 if no app runs.
    func submit() -> Int {
        living.withLock { living in
            guard let (app, user) = living else { return 1 }
            let operations = (0..<random.draw(1..<4)).map { _ in
                SyncOperation(
                    component: TortureWorld.orders, key: "\(user)-\(random.draw(0..<Self.entitiesPerUser))",
                    name: "update",
                    body: Array("{}".utf8))
            }
            world.history.operations { checker, _ in
                for operation in operations { checker.submit(operation.id, by: name, to: operation.key) }
            }
            do {
                try app.submit(operations)
            } catch {
                addFault(.stored, "\(name) cannot submit an operation: \(error)")
            }
            return operations.count
        }
    }

    /// Checks a result of an operation.
    ///
    /// - Returns: whether the app confirms it.
    func receive(_ result: TortureResult) -> Bool {
        world.history.operations { checker, now in
            checker.recordResult(
                result.operationId, to: name, isAccepted: result.isAccepted, code: result.code, at: now)
        }
        return !forgets()
    }

    /// Records that the app has confirmed a result.
    func recordConfirmation(of result: TortureResult) {
        world.history.operations { checker, _ in checker.confirm(result.operationId) }
    }

    /// Whether the app forgets a confirmation.
    private func forgets() -> Bool {
        guard random.draw(0..<Self.forgetsEvery) == 0 else { return false }
        world.count("confirmations forgotten")
        return true
    }

    /// Checks the entity's new state after an operation.
    private func receive(state oplog: TortureOplog) -> Bool {
        guard let id = TortureState.operation(in: oplog.payload, of: oplog.userId ?? "", instance) else {
            addFault(.addressed, "\(name) got the state \(oplog.payload.prefix(100))")
            return false
        }
        world.history.operations { checker, now in checker.recordState(after: id, to: name, at: now) }
        return true
    }

    // MARK: Oplogs

    /// Checks the first hand-out of data that depends on sessions and owners.
    private func judge(_ push: String, of kind: TortureWorld.Kind, _ user: String) {
        switch kind.bizType {
        case TortureWorld.live.bizType: world.history.observe(PresenceEvent.given(push: push, device: name))
        case TortureWorld.checked.bizType: recordVerdict(push)
        case TortureWorld.solo.bizType, TortureWorld.checkedSolo.bizType:
            world.count("single-device hand-outs")
            world.history.askOwners { checker, owners in
                guard let begun = checker.invokedAt(push),
                    let owner = owners.rightful(
                        of: TortureWorld.name(instance, user), insteadOf: name, forPushBegunAt: begun)
                else { return }
                checker.add(
                    .owned, world.history.elapsed, "\(name) got \(push), but the app signed in later on \(owner)")
            }
            if kind.bizType == TortureWorld.checkedSolo.bizType { recordVerdict(push) }
        default: break
        }
    }

    /// A push from after the sign-in shows that its session is valid.
    private func recordVerdict(_ push: String) {
        guard !lastSignIn.withLock({ $0.hasVerdict }) else { return }
        let isNew = world.history.askOwners { checker, owners in
            guard let begun = checker.invokedAt(push), let asked = owners.signedIn(name) else { return false }
            return begun > asked
        }
        if isNew { lastSignIn.withLock { $0.hasVerdict = true } }
    }

    /// Checks a hand-out to the app.
    ///
    /// - Returns: whether the app confirms it.
    func receive(_ oplog: TortureOplog) -> Bool {
        if oplog.bizType == TortureWorld.orders { return receive(state: oplog) }
        guard let kind = TortureWorld.kinds.first(where: { $0.bizType == oplog.bizType }) else {
            addFault(.addressed, "\(name) got \(oplog.bizType), which has no configuration")
            return false
        }
        if isJava { world.count("hand-outs to Java apps") }
        let from = TortureWorld.target(instance, kind, oplog.userId ?? device)
        let push = oplog.thirdMsgId ?? ""
        if let recalled = oplog.recalls {
            world.count("tombstones given to apps")
            world.history.observe(.tombstone(device: name, from: from, id: oplog.oplogId, recalls: recalled))
        } else {
            world.history.observe(
                .given(
                    HistoryHandOut(
                        device: name, from: from, id: oplog.oplogId, push: push, payload: oplog.payload,
                        attempt: oplog.attempt)))
            if oplog.attempt == 1 { judge(push, of: kind, oplog.userId ?? "") }
        }
        return oplog.attempt != 1 || !forgets()
    }

    /// Records that the app has confirmed an oplog.
    func recordConfirmation(of oplog: TortureOplog) {
        guard let kind = TortureWorld.kinds.first(where: { $0.bizType == oplog.bizType }) else {
            guard let id = TortureState.operation(in: oplog.payload, of: oplog.userId ?? "", instance) else { return }
            return world.history.operations { checker, _ in checker.confirm(stateAfter: id, by: name) }
        }
        let from = TortureWorld.target(instance, kind, oplog.userId ?? device)
        world.history.observe(.confirmed(device: name, from: from, id: oplog.oplogId))
    }

    private func addFault(_ promise: HistoryFault.Promise, _ text: String) {
        world.history.ask { $0.add(promise, world.history.elapsed, text) }
    }
}
