import Foundation
import MobileSync
import SyncModel
import SyncStore
import Synchronization
import TestSupport

/// Random pushes of every kind to devices that connect and disconnect, and the figures that must result. The expected
/// figures come from the API's answers and from the oplogs that each device's app received, never from the service.
final class FigureCampaign: Sendable {
    static let instance = "figures_app"
    /// The user whose devices never connect, and the user whose device connects once, before everything else.
    private static let absent = 0
    private static let early = 1

    /// A push, as the figures of its target name it.
    struct Line: Hashable, Sendable {
        let bizType: String
        let oplogID: Int64
    }

    private let stack: Stack
    private let users = 12
    private let devices: [TestDevice]
    private let caller: Caller
    /// Stored pushes, by target. Non-persistent pushes are not included, and global pushes have no target.
    private let accepted = Mutex<[String: Set<Line>]>([:])
    private let caughtUp = Mutex(0)
    private let isOver = Mutex(false)

    init(_ stack: Stack) {
        self.stack = stack
        caller = Caller(apis: stack.apis, instance: Self.instance)
        devices = (0..<users * 2).map { number in
            TestDevice(
                stack, user: "fu\(number / 2)", device: "fd\(number)",
                operatingSystem: ["iOS", "Android", "Other"][number % 3],
                appVersion: ["1.0.0", "1.1", "beta"][number / 3 % 3], instance: Self.instance)
        }
    }

    /// The control data of the instance.
    static let controlData = """
        {
          "instances": [{"instanceId": "\(instance)"}],
          "configurations": [
            {"instanceId": "\(instance)", "bizType": "CHAT", "description": "", "scope": "appointed",
              "target": "user", "repush": "all"},
            {"instanceId": "\(instance)", "bizType": "MAIL", "description": "", "scope": "appointed",
              "target": "user", "repush": "all"},
            {"instanceId": "\(instance)", "bizType": "PING", "description": "", "scope": "appointed",
              "target": "user", "persistent": false},
            {"instanceId": "\(instance)", "bizType": "LOCK", "description": "", "scope": "appointed",
              "target": "device", "repush": "all"},
            {"instanceId": "\(instance)", "bizType": "NEWS-USER", "description": "", "scope": "global",
              "target": "user", "repush": "all"},
            {"instanceId": "\(instance)", "bizType": "NEWS", "description": "", "scope": "global",
              "target": "device", "repush": "all"}
          ]
        }
        """

    private func devices(of user: Int) -> ArraySlice<TestDevice> { devices[user * 2..<user * 2 + 2] }

    /// The devices that connect and disconnect.
    private var moving: ArraySlice<TestDevice> { devices[4...] }

    // MARK: Pushes and connections

    /// Runs pushes and connections until there are enough pushes and `meanwhile` has returned; then compares the
    /// figures.
    func run(pushes: Int, database: TestDatabase, meanwhile: @escaping @Sendable () async throws -> Void) async throws {
        try await visitOnce(database)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in moving { group.addTask { try await self.comeAndGo(device) } }
            let callers = Callers(count: 16)
            try await callers.run(meanwhile: meanwhile) { caller, number in
                try await self.push("\(caller)-\(number)", first: caller)
                return number + 1 >= pushes / callers.count
            }
            group.cancelAll()
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, device) in moving.enumerated() { group.addTask { try await self.stay(device, number) } }
            try await eventually("all devices are caught up", within: .seconds(60)) {
                self.caughtUp.withLock { $0 == self.moving.count }
            }
            try await ping()
            // `faults(in:)` reports each difference that is left after this time.
            try? await eventually("the figures are correct", within: .seconds(60)) {
                try await self.faults(in: database).isEmpty
            }
            isOver.withLock { $0 = true }
            try await group.waitForAll()
        }
    }

    /// A device that connects once: its confirmation is in the figures before it disconnects.
    private func visitOnce(_ database: TestDatabase) async throws {
        let device = devices(of: Self.early)[Self.early * 2]
        try await device.connected {
            for number in 0..<5 {
                try await send("CHAT", to: device.user, id: "early-\(number)")
            }
            let query = FigureStore.figures(of: target(.user, device.user))
            try await eventually("its confirmations count", within: .seconds(20)) {
                try await database.runAsConsole(query).arrivals == 5
            }
        }
    }

    private func push(_ id: String, first: Int) async throws {
        let (kind, user, device) = (Int.random(in: 0..<20), Int.random(in: 0..<users), Int.random(in: devices.indices))
        let more = Int.random(in: 0..<10) == 0 ? ["osType": "iOS"] : [:]
        for _ in 0..<(Int.random(in: 0..<10) == 0 ? 2 : 1) {
            switch kind {
            case 0: try await send("NEWS-USER", to: nil, id: id, more: more, first: first)
            case 1: try await send("NEWS", to: nil, id: id, more: more, first: first)
            case 2..<6: try await send("LOCK", to: "fd\(device)", id: id, more: more, first: first)
            default: try await send(kind < 10 ? "MAIL" : "CHAT", to: "fu\(user)", id: id, more: more, first: first)
            }
        }
    }

    private func send(
        _ bizType: String, to target: String?, id: String, more: [String: String] = [:], first: Int = 0
    ) async throws {
        let answer = try await caller.push(bizType, to: target, id: id, payload: id, more: more, first: first)
        let line = Line(bizType: bizType, oplogID: try requireValue(answer.oplogId, "a success has an oplogId"))
        accepted.withLock { _ = $0[target ?? "", default: []].insert(line) }
    }

    /// Non-persistent pushes reach only connected devices; a push that reached no device is not counted.
    private func ping() async throws {
        for number in 0..<users * 3 {
            let user = "fu\(number % users)"
            let answer = await caller.call("PING", to: user, id: "ping-\(number)", payload: "ping-\(number)")
            guard answer?.msg == "SUCCESS" else {
                guard answer?.msg == "NOT_ONLINE", [Self.absent, Self.early].contains(number % users) else {
                    throw Failure("ping to \(user): \(answer?.msg ?? "no answer")")
                }
                continue
            }
        }
        try await eventually("the pings are there", within: .seconds(20)) {
            self.moving.allSatisfy { $0.payloads("PING").count == 3 }
        }
    }

    private func comeAndGo(_ device: TestDevice) async throws {
        while !Task.isCancelled {
            try? await device.visit(gateway: .random(in: 0...1), for: .milliseconds(Int.random(in: 500...3_000)))
            try? await ContinuousClock().sleep(for: .milliseconds(Int.random(in: 0...500)))
        }
    }

    private func stay(_ device: TestDevice, _ number: Int) async throws {
        try await device.connected(gateway: number) {
            self.caughtUp.withLock { $0 += 1 }
            try await eventually("the comparison is over", within: .seconds(180)) { self.isOver.withLock { $0 } }
        }
    }

    // MARK: Expected figures

    /// The distinct pushes that a device's app received.
    private static func shown(_ device: TestDevice) -> Set<Line> {
        Set(device.received.map { Line(bizType: $0.bizType, oplogID: $0.oplogID) })
    }

    private static func shown(_ devices: some Sequence<TestDevice>) -> Set<Line> {
        devices.reduce(into: Set()) { $0.formUnion(shown($1)) }
    }

    private func target(_ kind: ChannelKind, _ name: String) -> TargetAddress {
        TargetAddress(instanceID: InstanceID(Self.instance), kind: kind, target: name)
    }

    /// The faults as text; empty when every figure is correct.
    func faults(in database: TestDatabase) async throws -> [String] {
        let accepted = accepted.withLock { $0 }
        var faults: [String] = []
        for user in 0..<users {
            let shown = Self.shown(devices(of: user)).filter { !["LOCK", "NEWS"].contains($0.bizType) }
            let pulled = shown.filter { ["PING", "NEWS-USER"].contains($0.bizType) }
            faults += try await self.faults(
                of: target(.user, "fu\(user)"), pushes: (accepted["fu\(user)"] ?? []).union(pulled), arrived: shown,
                in: database)
        }
        for device in devices {
            let shown = Self.shown(device).filter { ["LOCK", "NEWS"].contains($0.bizType) }
            let pulled = shown.filter { $0.bizType == "NEWS" }
            faults += try await self.faults(
                of: target(.device, device.device), pushes: (accepted[device.device] ?? []).union(pulled),
                arrived: shown, in: database)
        }
        return try await faults + faultsOfAll(accepted, in: database)
    }

    private func faults(
        of target: TargetAddress, pushes: Set<Line>, arrived: Set<Line>, in database: TestDatabase
    ) async throws -> [String] {
        let figures = try await database.runAsConsole(FigureStore.figures(of: target))
        let expected = FigureStore.Figures(pushes: Int64(pushes.count), arrivals: Int64(arrived.count))
        var faults: [String] = []
        if figures != expected { faults.append("\(target.target): \(figures), not \(expected)") }
        var list: [FigureStore.Push] = []
        repeat {
            let page = try await database.runAsConsole(
                FigureStore.pushes(of: target, before: list.last?.cursor, limit: 50))
            list += page
            if page.count < 50 { break }
        } while true
        func lines(_ list: [FigureStore.Push]) -> Set<Line> {
            Set(list.map { Line(bizType: $0.bizType.text, oplogID: $0.oplogID.value) })
        }
        if list.count != pushes.count || lines(list) != pushes { faults.append("\(target.target): another list") }
        if lines(list.filter { $0.arrivedAt != nil }) != arrived { faults.append("\(target.target): other arrivals") }
        if !lines(list.filter { $0.firstHandedOutAt != nil }).isSuperset(of: arrived) {
            faults.append("\(target.target): arrived and never handed out")
        }
        return faults
    }

    private func faultsOfAll(_ accepted: [String: Set<Line>], in database: TestDatabase) async throws -> [String] {
        let app = InstanceID(Self.instance)
        let now = WallTime(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1_000))
        let begin = now + .seconds(-7_200)
        var faults: [String] = []
        // Ids are unique only within a channel, so this counts pairs of target and line.
        let shownTo =
            (0..<users).map { (devices(of: $0), ["CHAT", "MAIL", "PING"]) } + devices.map { ([$0], ["LOCK"]) }
        func arrivals(_ bizType: String) -> Int {
            if bizType.hasPrefix("NEWS") { return Self.shown(devices).filter { $0.bizType == bizType }.count }
            return shownTo.filter { $0.1.contains(bizType) }.reduce(0) { sum, some in
                sum + Self.shown(some.0).filter { $0.bizType == bizType }.count
            }
        }
        var total = (pushes: 0, arrivals: 0)
        for bizType in ["CHAT", "MAIL", "PING", "LOCK", "NEWS-USER", "NEWS"] {
            let days = try await database.runAsConsole(
                FigureStore.days(of: app, bizType: BizType(bizType), from: begin, to: now))
            let found = (Int(days.reduce(0) { $0 + $1.pushes }), Int(days.reduce(0) { $0 + $1.arrivals }))
            let stored = accepted.values.reduce(0) { sum, lines in sum + lines.filter { $0.bizType == bizType }.count }
            let expected = (bizType == "PING" ? arrivals(bizType) : stored, arrivals(bizType))
            if found != expected { faults.append("days of \(bizType): \(found), not \(expected)") }
            total = (total.pushes + expected.0, total.arrivals + expected.1)
        }
        let minutes = try await database.runAsConsole(
            FigureStore.minutes(of: app, from: begin, to: now + .seconds(60), step: .seconds(600)))
        let found = (minutes.reduce(0) { $0 + $1.pushes }, minutes.reduce(0) { $0 + $1.arrivals.total })
        if found != (Int64(total.pushes), Int64(total.arrivals)) { faults.append("minutes: \(found), not \(total)") }
        let traits = try await database.runAsConsole(FigureStore.traits(of: app, from: begin, to: now))
        // A device can disconnect before it reads sent data; all devices connected again for the rest.
        let confirmed = traits.reduce(0) { $0 + Int($1.confirmed) }
        let given = devices.reduce(0) { $0 + Self.shown($1).count }
        if confirmed != given || traits.contains(where: { $0.confirmed != $0.handedOut }) {
            faults.append("devices received \(given), not \(traits)")
        }
        if Set(traits.map(\.appVersion)) != ["1.0.0", "1.1", ""] { faults.append("versions: \(traits)") }
        return faults
    }
}
