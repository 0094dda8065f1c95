import DeliveryHistory
import DeviceProtocol
import Foundation
import NIOSSL
import PostgreSQL
import SyncModel
import Synchronization
import ToolSupport

/// A torture run, from the first connection to the final comparison.
struct TortureRun: Sendable {
    /// The parameters of the run.
    struct Plan: Sendable {
        let seed: UInt64
        let minutes: Int
        /// Rounds of faults that are injected in any case.
        let rounds: Int
        let devices: Int
        /// Pushes per second.
        let rate: Int
        /// Device operations per second.
        let operations: Int
        let kinds: [FaultKind]
        /// File with the command of the Java client's test programs. The value is nil for a run without Java apps.
        let java: String?
    }

    /// Time limit for the first connections, for the service to catch up after a round, and for the final deliveries.
    private static let catchUpLimit = Duration.seconds(180)
    /// Longest permitted time to catch up after a heal (I11).
    static let longestLag = Duration.seconds(30)
    private static let rowsPerPage = 50_000
    /// Number of honest devices per misbehaving device.
    private static let devicesPerMisbehavingDevice = 20
    /// Pause without faults, so that sessions are certain. It follows every tenth round. The first pause precedes the
    /// first round.
    private static let rest = Duration.seconds(20)
    private static let firstRest = Duration.seconds(12)
    private static let roundsPerRest = 10
    /// Limit of the median response time while maintenance waits for a lock: calls must not wait for it.
    private static let heldAnswer = Duration.milliseconds(700)

    let plan: Plan
    let world: TortureWorld
    /// Folder for the local stores of the devices.
    let folder: URL
    /// Receives progress as single lines.
    let say: @Sendable (String) -> Void

    private var history: TortureHistory { world.history }

    /// Executes the run.
    func run() async throws -> TortureReport {
        var report = TortureReport(plan: plan)
        var devices: [TortureDevice] = []
        for instance in TortureWorld.instances {
            for number in 0..<world.devicesPerInstance {
                devices.append(
                    TortureDevice(
                        world, instance: instance, number: number, folder: folder,
                        seed: plan.seed &+ UInt64(devices.count)))
            }
        }
        report.clockError = try measureClock()
        guard report.clockError < .seconds(1), report.clockError > .seconds(-1) else {
            throw TortureFailure(
                "the database's clock is \(report.clockError) ahead: ends of validity cannot be judged")
        }
        let specialDevices = try makeSpecialDevices()
        let backend = TortureBackend(world, seed: plan.seed)
        try await withThrowingTaskGroup(of: Void.self) { [devices] group in
            for device in devices { group.addTask { await device.run() } }
            say("connecting \(devices.count) devices")
            guard await waited(Self.catchUpLimit, { world.present == devices.count }) else {
                group.cancelAll()
                throw TortureFailure("only \(world.present) of \(devices.count) devices connected")
            }
            report.memory.before = world.stack.memory()
            world.phase = .loaded
            group.addTask { await backend.run(rate: plan.rate) }
            for device in specialDevices { group.addTask { await device() } }
            group.addTask { await endSessions(of: devices) }
            group.addTask { await submitOperations(of: devices) }
            try await rounds(&report, backend)
            say("load ended; waiting for the final deliveries")
            world.phase = .draining
            let isDone = await waited(Self.catchUpLimit) {
                backend.openCalls == 0 && history.open(since: history.elapsed) == 0
                    && history.operations { checker, _ in checker.open } == 0
            }
            if !isDone {
                history.expectNothingOwed()
                history.operations { $0.expectNothingOpen(at: $1) }
            }
            report.memory.after = world.stack.memory()
            world.phase = .over
            try await group.waitForAll()
        }
        try compareWithDatabase()
        report.length = history.elapsed
        report.tally = world.tally
        history.ask { checker in
            report.counts = checker.counts
            report.faults = checker.faults
            report.faultCount = checker.faultCount
        }
        report.add(history.operations { checker, _ in checker })
        report.add(history.presence)
        history.close()
        return report
    }

    /// Creates the devices with invalid sessions, the misbehaving devices and the MQTT devices.
    private func makeSpecialDevices() throws -> [@Sendable () async -> Void] {
        func context(_ protocols: String) throws -> NIOSSLContext {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(world.stack.certificateAuthority)
            tls.applicationProtocols = [protocols]
            return try NIOSSLContext(configuration: tls)
        }
        let native = try context(DeviceProtocolLimits.applicationProtocol)
        let mqtt = try context(TortureMQTTDevice.applicationProtocol)
        var runs: [@Sendable () async -> Void] = []
        for number in 0..<max(TortureWorld.instances.count, plan.devices / Self.devicesPerMisbehavingDevice) {
            let instance = TortureWorld.instances[number % TortureWorld.instances.count]
            let seed = plan.seed &+ UInt64(1_000_000 + number)
            let place = number / TortureWorld.instances.count
            if TortureWorld.isForged(instance), place.isMultiple(of: 2) {
                let device = TortureInvalidSessionDevice(
                    world, instance: instance, number: place, tls: native, seed: seed)
                runs.append { await device.run() }
            } else {
                let device = TortureMisbehavingDevice(world, instance: instance, number: place, tls: native, seed: seed)
                runs.append { await device.run() }
            }
        }
        for instance in TortureWorld.instances {
            for user in world.busyUsers {
                let seed = plan.seed &+ UInt64(2_000_000 + runs.count)
                let device = TortureMQTTDevice(world, instance: instance, user: user, tls: mqtt, seed: seed)
                runs.append { await device.run() }
            }
        }
        return runs
    }

    /// Offset of the database clock, which decides validity, to the clock of this process.
    private func measureClock() throws -> Duration {
        let database = try ToolSettings.database(file: world.stack.toolFile)
        defer { database.close() }
        let clock = PostgresStatement("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint", [])
        let before = Date()
        let there = try database.run(clock, within: .seconds(10)).first(Int64.self) ?? 0
        let here = before.timeIntervalSince1970 + Date().timeIntervalSince(before) / 2
        return .milliseconds(there - Int64(here * 1_000))
    }

    private func waited(_ limit: Duration, _ condition: @Sendable () -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while !condition() {
            guard .now < deadline, !Task.isCancelled else { return false }
            try? await Task.sleep(for: .milliseconds(100))
        }
        return true
    }

    // MARK: Under load

    private func endSessions(of devices: [TortureDevice]) async {
        var random = SeededGenerator(seed: plan.seed ^ 0x5e55_1045)
        while world.phase == .loaded {
            await devices[Int.random(in: devices.indices, using: &random)].endSession()
            try? await Task.sleep(for: .milliseconds(Int.random(in: 500...3_000, using: &random)))
        }
    }

    /// Submits operations on random devices, online or offline.
    private func submitOperations(of devices: [TortureDevice]) async {
        var random = SeededGenerator(seed: plan.seed ^ 0x0bea_7107)
        let start = ContinuousClock.now
        var sent = 0
        while world.phase == .loaded {
            let due = Int(start.duration(to: .now) / .milliseconds(1)) * plan.operations / 1_000
            while sent < due {
                sent += devices[Int.random(in: devices.indices, using: &random)].submit()
            }
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Injects and heals one round of faults after another, and waits for the service to catch up, until the time is
    /// over and there were enough rounds.
    private func rounds(_ report: inout TortureReport, _ backend: TortureBackend) async throws {
        var schedule = FaultSchedule(seed: plan.seed, kinds: plan.kinds)
        let complaints = Mutex<[String]>([])
        let deadline = ContinuousClock.now + .seconds(plan.minutes * 60)
        try? await Task.sleep(for: Self.firstRest)
        while .now < deadline || report.rounds.count < plan.rounds, !Task.isCancelled {
            let round = schedule.nextRound()
            await perform(round, backend) { text in complaints.withLock { $0.append(text) } }
            let healedAt = history.elapsed
            let names = round.map { "\"\($0.kind.name)\"" }.joined(separator: " and ")
            let what = round.isEmpty ? "a round without a fault" : "the fault \(names)"
            var isWhole = await waited(Self.longestLag) { history.open(since: healedAt) == 0 }
            if !isWhole {
                let open = history.describeOpen(since: healedAt, upTo: 3) { world.lastStatus(of: $0) }
                let text =
                    "\(TortureReport.seconds(Self.longestLag)) s after the end of \(what): "
                    + open.joined(separator: "; ")
                history.ask { $0.add(.prompt, history.elapsed, text) }
                say(text)
                isWhole = await waited(Self.catchUpLimit) { history.open(since: healedAt) == 0 }
            }
            world.endDisturbance(of: round)
            let lag = history.elapsed - healedAt
            report.rounds.add(round, lag: lag)
            let (pushes, faults) = history.ask { ($0.counts.answeredPushes, $0.faultCount) }
            let seconds = TortureReport.seconds(lag)
            let who = isWhole ? "all devices caught up" : "some devices did NOT catch up"
            let broken = faults + history.presence.faultCount
            say("\(pushes) pushes answered, promises broken: \(broken); after \(what), \(who) within \(seconds) s")
            if report.rounds.count.isMultiple(of: Self.roundsPerRest) { try? await Task.sleep(for: Self.rest) }
        }
        report.complaints = complaints.withLock { $0 }
    }

    private func perform(
        _ round: [FaultSchedule.Planned], _ backend: TortureBackend, complain: @escaping @Sendable (String) -> Void
    ) async {
        let injector = FaultInjector(world: world, complain: complain)
        let before = history.elapsed
        await withDiscardingTaskGroup { group in
            if round.isEmpty { group.addTask { try? await Task.sleep(for: .seconds(5)) } }
            for fault in round {
                group.addTask {
                    try? await Task.sleep(for: fault.start)
                    world.beginDisturbance(by: fault)
                    await injector.begin(fault)
                    let began = history.elapsed
                    try? await Task.sleep(for: fault.length)
                    if fault.kind == .heldPartitions, round.count == 1 { judge(backend, since: began, before: before) }
                    await injector.heal(fault)
                }
            }
        }
        await injector.end()
    }

    /// Checks that pushes are answered while the maintenance of partitions waits for a lock.
    private func judge(_ backend: TortureBackend, since began: Duration, before: Duration) {
        guard let usual = backend.medianAnswer(from: before - .seconds(30), to: before), usual < Self.heldAnswer / 2,
            let held = backend.medianAnswer(from: began, to: history.elapsed)
        else { return }
        say("responses while maintenance waited for a lock: \(held) (median), usually \(usual)")
        guard held >= Self.heldAnswer else { return }
        let text = "the median response took \(held) while maintenance waited for a lock, usually \(usual)"
        history.ask { $0.add(.prompt, history.elapsed, text) }
    }

    // MARK: End of the run

    /// Checks that the database has every answered push once and in order.
    private func compareWithDatabase() throws {
        let database = try ToolSettings.database(file: world.stack.toolFile)
        defer { database.close() }
        var stored: [(push: String, target: HistoryTarget, id: Int64)] = []
        var (channel, id): (Int64, Int64) = (0, 0)
        while true {
            let rows = try database.run(
                PostgresStatement(
                    """
                    SELECT o.channel_id, o.oplog_id, o.third_message_id, c.instance_id, c.target, c.biz_type
                    FROM oplog o JOIN channel c USING (channel_id)
                    WHERE c.instance_id LIKE 'torture-%' AND o.recalls IS NULL AND (o.channel_id, o.oplog_id) > ($1, $2)
                    ORDER BY o.channel_id, o.oplog_id LIMIT $3
                    """, [.int64(channel), .int64(id), .int64(Int64(Self.rowsPerPage))]), within: .seconds(60))
            try rows.forEachRow { columns throws(PostgresError) in
                (channel, id) = try (columns.next(), columns.next())
                let push = try columns.next(String.self)
                let instance = try columns.next(String.self)
                let target = try columns.next(String.self)
                let bizType = try columns.next(String.self)
                guard let kind = TortureWorld.kinds.first(where: { $0.bizType == bizType }) else { return }
                stored.append((push, TortureWorld.target(instance, kind, target), id))
            }
            if rows.count < Self.rowsPerPage { break }
        }
        history.ask { [stored] in $0.compare(stored: stored, at: history.elapsed) }
    }
}

/// A torture run could not start.
struct TortureFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
