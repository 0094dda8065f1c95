import DeliveryHistory
import Foundation
import Logging
import MobileSync
import SyncModel
import Synchronization

/// An app of a torture run, with the client library and a local store. The app sometimes fails to confirm. The process
/// dies at times and restarts, sometimes with another user.
final class TortureDevice: Sendable {
    /// Average lifetime of a process.
    private static let life = Duration.seconds(120)
    static let longestLife = life * 2
    /// One in this many oplogs is not confirmed at its first hand-out.
    private static let forgetsEvery = 200
    /// One in this many starts binds another user.
    private static let switchesEvery = 10
    /// One in this many devices has a wrong clock.
    private static let wrongClocksEvery = 7
    /// Few entities, so that a user's devices change the same ones.
    private static let entitiesPerUser = 4
    /// Seconds for which a connection must stay open before a sign-in counts as complete. No fault holds frames for
    /// longer, so the client has received everything that the service sent.
    private static let settledAfter = 8
    private static let silent = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }

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
    private let storePath: String
    private let random: Mutex<SeededGenerator>
    private let session = Mutex("")
    private let lastSignIn = Mutex(SignIn())
    /// The client of the running process, and its user.
    private let living = Mutex<(client: SyncClient, user: String)?>(nil)
    /// Whether the running process has received its backlog.
    private let isPresent = Mutex(false)

    init(_ world: TortureWorld, instance: String, number: Int, folder: URL, seed: UInt64) {
        self.world = world
        self.instance = instance
        self.number = number
        storePath = folder.appending(path: "\(instance)-\(number).sqlite").path
        random = Mutex(SeededGenerator(seed: seed))
    }

    private var device: String { "device-\(number)" }
    private var name: String { TortureWorld.name(instance, device) }

    private func draw(_ range: Range<Int>) -> Int { random.withLock { Int.random(in: range, using: &$0) } }

    /// Ends the user session at the tenant, and in half of the cases revokes it. The app then binds a new session.
    func endSession() async {
        let ended = session.withLock { $0 }
        guard !ended.isEmpty, (try? await world.stack.endSession(ended)) != nil else { return }
        world.count("sessions ended")
        guard draw(0..<2) == 0, let user = living.withLock({ $0?.user }) else { return }
        if await world.api.revoke(ended, of: user, in: instance, api: draw(0..<2))?.success == true {
            world.count("sessions revoked")
        }
    }

    /// Runs processes one after another until the run is over.
    func run() async {
        var user = number / TortureWorld.devicesPerUser
        // Spreads the starts.
        await pause(.milliseconds(draw(0..<10_000)))
        while world.phase != .over {
            do {
                try await live(as: "user-\(user)")
            } catch {
                world.history.ask {
                    $0.add(.delivered, world.history.elapsed, "the client of \(name) stopped: \(error)")
                }
                return
            }
            guard world.phase != .over else { return }
            world.history.observe(.crashed(device: name))
            world.history.observe(OwnerChecker.Event.died(device: name))
            world.count("apps died")
            world.recordStatus("died", of: name)
            // The app changes its user only without open operations, since their results go to the former user.
            let isFree = world.history.operations { checker, _ in checker.open(of: name) } == 0
            if isFree, draw(0..<Self.switchesEvery) == 0 { user = draw(0..<world.usersPerInstance) }
            await pause(.milliseconds(draw(0..<3_000)))
        }
    }

    private func pause(_ duration: Duration) async { try? await Task.sleep(for: duration) }

    /// Runs one process from its start to its death.
    private func live(as user: String) async throws {
        let stack = world.stack
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: stack.gateways[draw(0..<stack.gateways.count)], instanceID: instance,
            deviceID: device, storePath: storePath, trust: .certificateAuthority(file: stack.certificateAuthority),
            operatingSystemName: "iOS", appVersion: "1.0")
        if number.isMultiple(of: Self.wrongClocksEvery) {
            // Days before or after the correct time.
            let wrong = Int64(number % 5 - 2) * 86_400_000
            configuration.clock = { WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000) + wrong) }
        }
        let client = try SyncClient(configuration: configuration, logger: Self.silent)
        world.history.observe(.arrived(device: name, instance: instance, user: user))
        try signIn(user, client)
        world.history.observe(.bound(device: name, instance: instance, user: user))
        let events = client.events
        living.withLock { $0 = (client, user) }
        defer {
            living.withLock { $0 = nil }
            setPresent(false)
            setOpen(false)
            world.history.observe(PresenceEvent.left(device: name))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            group.addTask { [self] in
                for await event in events {
                    world.recordStatus("\(event)", of: name)
                    switch event {
                    case .caughtUp(userID: user):
                        setPresent(true)
                        setOpen(true)
                    case .closed, .connectionLost, .status(.notAvailable), .status(.connecting),
                        .status(.connectFailed):
                        setOpen(false)
                    case .sessionInvalid: try signIn(user, client)
                    default: break
                    }
                }
            }
            group.addTask { [self] in
                for try await oplog in client.allOplogs() { try await handle(oplog, client) }
            }
            group.addTask { [self] in
                for try await result in client.operationResults() { try await handle(result, client) }
            }
            group.addTask { [self] in await waitForDeath() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func setPresent(_ isPresent: Bool) {
        let isChanged = self.isPresent.withLock { before in
            defer { before = isPresent }
            return before != isPresent
        }
        if isChanged { world.changePresent(by: isPresent ? 1 : -1) }
    }

    private func signIn(_ user: String, _ client: SyncClient) throws {
        let new = "session-\(world.next())"
        session.withLock { $0 = new }
        // Data in flight for the former bind is dropped.
        setOpen(false)
        lastSignIn.withLock { $0 = SignIn() }
        world.history.observe(OwnerChecker.Event.signedIn(device: name, user: TortureWorld.name(instance, user)))
        try client.bind(userID: user, sessionID: new)
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

    /// Returns when the process dies: after some time under load, otherwise at the end of the run.
    private func waitForDeath() async {
        let milliseconds = Int(Self.life / .milliseconds(1))
        var left = Duration.milliseconds(draw(0..<milliseconds * 2))
        while !Task.isCancelled, world.phase != .over {
            await pause(.seconds(1))
            countSignInSecond()
            guard world.phase == .loaded else { continue }
            left -= .seconds(1)
            if left <= .zero {
                // Recorded before the connection ends, because the service can notice that at once.
                setOpen(false)
                return
            }
        }
    }

    // MARK: Operations

    /// Submits operations of the user, online or offline.
    ///
    /// - Returns: the number of submitted operations, or 1 if no process runs.
    func submit() -> Int {
        living.withLock { living in
            guard let (client, user) = living else { return 1 }
            let operations = (0..<draw(1..<4)).map { _ in
                SyncOperation(
                    component: TortureWorld.orders, key: "\(user)-\(draw(0..<Self.entitiesPerUser))", name: "update",
                    body: Array("{}".utf8))
            }
            world.history.operations { checker, _ in
                for operation in operations { checker.submit(operation.id, by: name, to: operation.key) }
            }
            do {
                try client.submit(operations)
            } catch {
                world.history.ask {
                    $0.add(.stored, world.history.elapsed, "\(name) cannot submit an operation: \(error)")
                }
            }
            return operations.count
        }
    }

    private func handle(_ result: SyncOperationResult, _ client: SyncClient) async throws {
        let id = result.operationID
        world.history.operations { checker, now in
            checker.recordResult(id, to: name, isAccepted: result.isAccepted, code: result.code, at: now)
        }
        if draw(0..<Self.forgetsEvery) == 0 { return world.count("confirmations forgotten") }
        try await client.confirm(result)
        world.history.operations { checker, _ in checker.confirm(id) }
    }

    /// Handles the entity's new state after an operation.
    private func handleState(_ oplog: SyncOplog, _ client: SyncClient) async throws {
        let payload = oplog.text ?? ""
        guard let id = TortureState.operation(in: payload, of: oplog.userID ?? "", instance) else {
            return world.history.ask {
                $0.add(.addressed, world.history.elapsed, "\(name) got the state \(payload.prefix(100))")
            }
        }
        world.history.operations { checker, now in checker.recordState(after: id, to: name, at: now) }
        try await client.confirm(oplog)
        world.history.operations { checker, _ in checker.confirm(stateAfter: id, by: name) }
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

    private func handle(_ oplog: SyncOplog, _ client: SyncClient) async throws {
        if oplog.bizType == TortureWorld.orders { return try await handleState(oplog, client) }
        guard let kind = TortureWorld.kinds.first(where: { $0.bizType == oplog.bizType }) else {
            return world.history.ask {
                $0.add(.addressed, world.history.elapsed, "\(name) got \(oplog.bizType), which has no configuration")
            }
        }
        let from = TortureWorld.target(instance, kind, oplog.userID ?? device)
        let push = oplog.thirdMessageID ?? ""
        if let recalled = oplog.recalls {
            world.count("tombstones given to apps")
            world.history.observe(.tombstone(device: name, from: from, id: oplog.oplogID, recalls: recalled))
        } else {
            world.history.observe(
                .given(
                    HistoryHandOut(
                        device: name, from: from, id: oplog.oplogID, push: push, payload: oplog.text ?? "",
                        attempt: oplog.attempt)))
            if oplog.attempt == 1 { judge(push, of: kind, oplog.userID ?? "") }
        }
        if oplog.attempt == 1, draw(0..<Self.forgetsEvery) == 0 { return world.count("confirmations forgotten") }
        try await client.confirm(oplog)
        world.history.observe(.confirmed(device: name, from: from, id: oplog.oplogID))
    }
}
