import DeliveryHistory
import Foundation
import Logging
import MobileSync
import SyncModel
import Synchronization

/// A phone of a torture run: the client library with a store of its own, an app that now and then forgets to confirm,
/// a process that dies now and then and comes back, sometimes as another user.
final class TortureDevice: Sendable {
    /// A process lives that long on average.
    private static let life = Duration.seconds(120)
    /// One oplog in so many is not confirmed the first time.
    private static let forgetsEvery = 200
    /// One start in so many is as another user.
    private static let switchesEvery = 10
    /// One device in so many has a wrong clock.
    private static let wrongClocksEvery = 7
    /// A user's devices change the same things.
    private static let entitiesPerUser = 4
    private static let silent = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }

    private let world: TortureWorld
    private let instance: String
    private let number: Int
    private let storePath: String
    private let random: Mutex<SeededGenerator>
    private let session = Mutex("")
    /// The living process's client, and whose operations it takes.
    private let living = Mutex<(client: SyncClient, user: String)?>(nil)
    /// Whether its process has all that waited when it connected.
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

    /// Ends its user's session at the tenant; the app signs in anew when it is told.
    func endSession() async {
        let ended = session.withLock { $0 }
        guard !ended.isEmpty, (try? await world.stack.endSession(ended)) != nil else { return }
        world.count("sessions ended")
    }

    /// Lives until the run is over.
    func run() async {
        var user = number / TortureWorld.devicesPerUser
        // Not all at once.
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
            world.count("apps died")
            world.note("died", of: name)
            // What a user has sent up comes back to that user.
            let isFree = world.history.operations { checker, _ in checker.open(of: name) } == 0
            if isFree, draw(0..<Self.switchesEvery) == 0 { user = draw(0..<world.usersPerInstance) }
            await pause(.milliseconds(draw(0..<3_000)))
        }
    }

    private func pause(_ duration: Duration) async { try? await Task.sleep(for: duration) }

    /// One process, from its start to its death.
    private func live(as user: String) async throws {
        let stack = world.stack
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: stack.gateways[draw(0..<stack.gateways.count)], instanceID: instance,
            deviceID: device, storePath: storePath, trust: .certificateAuthority(file: stack.certificateAuthority),
            operatingSystemName: "iOS", appVersion: "1.0")
        if number.isMultiple(of: Self.wrongClocksEvery) {
            // Days before or after the true time.
            let wrong = Int64(number % 5 - 2) * 86_400_000
            configuration.clock = { WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000) + wrong) }
        }
        let client = try SyncClient(configuration: configuration, logger: Self.silent)
        try signIn(user, client)
        world.history.observe(.bound(device: name, instance: instance, user: user))
        let events = client.events
        living.withLock { $0 = (client, user) }
        defer {
            living.withLock { $0 = nil }
            notePresence(false)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            group.addTask { [self] in
                for await event in events {
                    world.note("\(event)", of: name)
                    switch event {
                    case .caughtUp(userID: user): notePresence(true)
                    case .sessionInvalid: try signIn(user, client)
                    default: break
                    }
                }
            }
            group.addTask { [self] in
                for try await oplog in client.allOplogs() { try await take(oplog, client) }
            }
            group.addTask { [self] in
                for try await result in client.operationResults() { try await take(result, client) }
            }
            group.addTask { [self] in await liveOn() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func notePresence(_ isPresent: Bool) {
        let isNews = self.isPresent.withLock { before in
            defer { before = isPresent }
            return before != isPresent
        }
        if isNews { world.notePresence(isPresent ? 1 : -1) }
    }

    private func signIn(_ user: String, _ client: SyncClient) throws {
        let new = "session-\(world.next())"
        session.withLock { $0 = new }
        try client.bind(userID: user, sessionID: new)
    }

    /// Returns when the process dies: under load after some time, otherwise with the run's end.
    private func liveOn() async {
        let milliseconds = Int(Self.life / .milliseconds(1))
        var left = Duration.milliseconds(draw(0..<milliseconds * 2))
        while !Task.isCancelled, world.phase != .over {
            await pause(.seconds(1))
            guard world.phase == .loaded else { continue }
            left -= .seconds(1)
            if left <= .zero { return }
        }
    }

    // MARK: Operations

    /// The user does something, wherever the device is.
    ///
    /// - Returns: operations that were sent up; 0 while no process lives.
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

    private func take(_ result: SyncOperationResult, _ client: SyncClient) async throws {
        let id = result.operationID
        world.history.operations { checker, now in
            checker.tell(id, to: name, isAccepted: result.isAccepted, code: result.code, at: now)
        }
        if draw(0..<Self.forgetsEvery) == 0 { return world.count("confirmations forgotten") }
        try await client.confirm(result)
        world.history.operations { checker, _ in checker.confirm(id) }
    }

    /// The tenant's new state of an order.
    private func takeState(_ oplog: SyncOplog, _ client: SyncClient) async throws {
        let payload = oplog.text ?? ""
        guard let id = TortureState.operation(in: payload, of: oplog.userID ?? "", instance) else {
            return world.history.ask {
                $0.add(.addressed, world.history.elapsed, "\(name) is given the state \(payload.prefix(100))")
            }
        }
        world.history.operations { checker, now in checker.give(stateAfter: id, to: name, at: now) }
        try await client.confirm(oplog)
        world.history.operations { checker, _ in checker.confirm(stateAfter: id, by: name) }
    }

    // MARK: Oplogs

    private func take(_ oplog: SyncOplog, _ client: SyncClient) async throws {
        if oplog.bizType == TortureWorld.orders { return try await takeState(oplog, client) }
        guard let kind = TortureWorld.kinds.first(where: { $0.bizType == oplog.bizType }) else {
            return world.history.ask {
                $0.add(.addressed, world.history.elapsed, "\(name) is given \(oplog.bizType), which it has not")
            }
        }
        let from = TortureWorld.target(instance, kind, oplog.userID ?? device)
        let text = oplog.text ?? ""
        world.history.observe(
            .given(
                HistoryHandOut(
                    device: name, from: from, id: oplog.oplogID, push: oplog.thirdMessageID ?? "", payload: text,
                    attempt: oplog.attempt)))
        if oplog.attempt == 1, draw(0..<Self.forgetsEvery) == 0 { return world.count("confirmations forgotten") }
        try await client.confirm(oplog)
        world.history.observe(.confirmed(device: name, from: from, id: oplog.oplogID))
    }
}
