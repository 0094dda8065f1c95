import DeliveryHistory
import DeviceProtocol
import Foundation
import NIOSSL
import PostgreSQL
import SyncModel
import Synchronization

/// A torture run from the first connect to the last comparison.
struct TortureRun: Sendable {
    /// What is asked for.
    struct Plan: Sendable {
        let seed: UInt64
        let minutes: Int
        let devices: Int
        /// Pushes per second.
        let rate: Int
        /// Operations that devices send up per second.
        let operations: Int
        let kinds: [FaultKind]
    }

    /// How long devices have to come at the beginning, and the answered pushes to arrive after a heal or at the end,
    /// before the run goes on without.
    private static let patience = Duration.seconds(180)
    /// How long the lag after a heal may be (reliability I11).
    static let longestLag = Duration.seconds(30)
    private static let rowsPerPage = 50_000
    /// One lying device for so many honest ones.
    private static let devicesPerLiar = 20
    /// Without a fault, so that sessions are certain: before the first round, and after every so many.
    private static let rest = Duration.seconds(20)
    private static let firstRest = Duration.seconds(12)
    private static let roundsPerRest = 10
    /// Answers while a lock is held for maintenance: calls must not wait for it.
    private static let heldAnswer = Duration.milliseconds(700)

    let plan: Plan
    let world: TortureWorld
    /// For the devices' stores.
    let folder: URL
    /// Told in one line what goes on.
    let say: @Sendable (String) -> Void

    private var history: TortureHistory { world.history }

    /// Runs all of it.
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
        let strangers = try makeStrangers()
        let backend = TortureBackend(world, seed: plan.seed)
        try await withThrowingTaskGroup(of: Void.self) { [devices] group in
            for device in devices { group.addTask { await device.run() } }
            say("\(devices.count) devices connect")
            guard await waited(Self.patience, { world.present == devices.count }) else {
                group.cancelAll()
                throw TortureFailure("only \(world.present) of \(devices.count) devices came")
            }
            report.memoryBefore = world.stack.memory()
            world.phase = .loaded
            group.addTask { await backend.run(rate: plan.rate) }
            for stranger in strangers { group.addTask { await stranger() } }
            group.addTask { await endSessions(of: devices) }
            group.addTask { await submitOperations(of: devices) }
            try await rounds(&report, backend)
            say("load ends; everything must arrive")
            world.phase = .draining
            let isDone = await waited(Self.patience) {
                backend.openCalls == 0 && history.open(since: history.elapsed) == 0
                    && history.operations { checker, _ in checker.open } == 0
            }
            if !isDone {
                history.expectNothingOwed()
                history.operations { $0.expectNothingOpen(at: $1) }
            }
            report.memoryAfter = world.stack.memory()
            world.phase = .over
            try await group.waitForAll()
        }
        try compareWithDatabase()
        report.length = history.elapsed
        report.tally = world.tally
        history.ask { checker in
            report.pushes = checker.answeredPushes
            report.handOuts = checker.handOuts
            report.repeatedHandOuts = checker.repeatedHandOuts
            report.faults = checker.faults
            report.faultCount = checker.faultCount
        }
        report.add(history.operations { checker, _ in checker })
        report.add(history.presence)
        history.close()
        return report
    }

    /// Devices that are no honest clients of the library, one for so many of those.
    private func makeStrangers() throws -> [@Sendable () async -> Void] {
        func context(_ protocols: String) throws -> NIOSSLContext {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(world.stack.certificateAuthority)
            tls.applicationProtocols = [protocols]
            return try NIOSSLContext(configuration: tls)
        }
        let native = try context(DeviceProtocolLimits.applicationProtocol)
        let mqtt = try context(TortureMQTTDevice.applicationProtocol)
        var runs: [@Sendable () async -> Void] = []
        for number in 0..<max(TortureWorld.instances.count, plan.devices / Self.devicesPerLiar) {
            let instance = TortureWorld.instances[number % TortureWorld.instances.count]
            let seed = plan.seed &+ UInt64(1_000_000 + number)
            let place = number / TortureWorld.instances.count
            if TortureWorld.isForged(instance), place.isMultiple(of: 2) {
                let forger = TortureForger(world, instance: instance, number: place, tls: native, seed: seed)
                runs.append { await forger.run() }
            } else {
                let liar = TortureLiar(world, instance: instance, number: place, tls: native, seed: seed)
                runs.append { await liar.run() }
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

    /// How far the clock that decides validity is ahead of this process's.
    private func measureClock() throws -> Duration {
        let database = try ToolSettings.database(file: world.stack.toolFile)
        defer { database.close() }
        let clock = PostgresStatement("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint", [])
        let before = Date()
        let there = try database.run(clock, within: .seconds(10)).first?.int64(0) ?? 0
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

    /// Devices of any state send operations up, as people go on working wherever they are.
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

    /// Breaks, heals and waits, again and again until the time is over.
    private func rounds(_ report: inout TortureReport, _ backend: TortureBackend) async throws {
        var schedule = FaultSchedule(seed: plan.seed, kinds: plan.kinds)
        let complaints = Mutex<[String]>([])
        let deadline = ContinuousClock.now + .seconds(plan.minutes * 60)
        try? await Task.sleep(for: Self.firstRest)
        while .now < deadline, !Task.isCancelled {
            let round = schedule.nextRound()
            await perform(round, backend) { text in complaints.withLock { $0.append(text) } }
            let healedAt = history.elapsed
            let what = round.isEmpty ? "nothing" : round.map(\.kind.name).joined(separator: ", ")
            var isWhole = await waited(Self.longestLag) { history.open(since: healedAt) == 0 }
            if !isWhole {
                let open = history.describeOpen(since: healedAt, upTo: 3) { world.lastNews(of: $0) }
                let text = "\(Self.longestLag) after \(what) had healed: " + open.joined(separator: "; ")
                history.ask { $0.add(.prompt, history.elapsed, text) }
                say(text)
                isWhole = await waited(Self.patience) { history.open(since: healedAt) == 0 }
            }
            world.endDisturbance(of: round)
            let lag = history.elapsed - healedAt
            report.add(round, lag: lag)
            let (pushes, faults) = history.ask { ($0.answeredPushes, $0.faultCount) }
            let end = "\(isWhole ? "caught up" : "NOT caught up") after \(lag)"
            let found = faults + history.presence.faultCount
            say("\(pushes) pushes, \(found) faults found; \(what): \(end)")
            if report.rounds.isMultiple(of: Self.roundsPerRest) { try? await Task.sleep(for: Self.rest) }
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

    /// Pushes are answered while the maintenance of partitions waits for a lock.
    private func judge(_ backend: TortureBackend, since began: Duration, before: Duration) {
        guard let usual = backend.medianAnswer(from: before - .seconds(30), to: before), usual < Self.heldAnswer / 2,
            let held = backend.medianAnswer(from: began, to: history.elapsed)
        else { return }
        say("answers while a lock was held for a new partition: \(held) (median), usually \(usual)")
        guard held >= Self.heldAnswer else { return }
        let text = "half of the calls took \(held) and more while a lock was held for a new partition, usually \(usual)"
        history.ask { $0.add(.prompt, history.elapsed, text) }
    }

    // MARK: The end

    /// Everything answered is in the database, once and in order.
    private func compareWithDatabase() throws {
        let database = try ToolSettings.database(file: world.stack.toolFile)
        defer { database.close() }
        var stored: [(push: String, target: HistoryTarget, id: Int64)] = []
        var (channel, id): (Int64, Int64) = (0, 0)
        while true {
            let rows = try database.run(
                PostgresStatement(
                    """
                    SELECT o.channel_id, o.oplog_id, o.third_message_id, c.instance_id, c.kind, c.target, c.biz_type
                    FROM oplog o JOIN channel c USING (channel_id)
                    WHERE c.instance_id LIKE 'torture-%' AND o.recalls IS NULL AND (o.channel_id, o.oplog_id) > ($1, $2)
                    ORDER BY o.channel_id, o.oplog_id LIMIT $3
                    """, [.int64(channel), .int64(id), .int64(Int64(Self.rowsPerPage))]), within: .seconds(60))
            for row in rows {
                (channel, id) = (row.int64(0), row.int64(1))
                let instance = row.text(3)
                guard let kind = TortureWorld.kinds.first(where: { $0.bizType == row.text(6) }) else { continue }
                stored.append(
                    (row.text(2), TortureWorld.target(instance, kind, row.text(5)), id))
            }
            if rows.count < Self.rowsPerPage { break }
        }
        history.ask { [stored] in $0.compare(stored: stored, at: history.elapsed) }
    }
}

/// Why a torture run could not be made.
struct TortureFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
