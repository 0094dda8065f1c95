import DeliveryHistory
import Foundation
import TestSupport

/// Users and devices of their own in the running system, and the rule book with their expected results. A seed draws
/// operations; each is executed on both, and the results are compared.
final class ModelComparison {
    private static let sharedRules: [String: RuleBook.Rules] = [
        "UCHAT": .init(), "SINGLE-USER": .init(isMultiDevice: false, threshold: 10),
        "DEVICE-LOCK": .init(isForDevices: true, isMultiDevice: false, threshold: 100),
        "PRESENCE-PING": .init(isPersistent: false, threshold: 100),
    ]

    private let stack: Stack
    private let database: TestDatabase
    private let seed: UInt64
    private var generator: SeededGenerator
    private var book: RuleBook
    private let devices: [ModelDevice]
    private let users: [String]
    /// The Sync ID that only this model sets online and offline.
    private let ownBizType: String
    private var ids: [RuleBook.Channel: [String: Int64]] = [:]
    private var operation = 0
    private var log: [String] = []

    init(_ stack: Stack, database: TestDatabase, seed: UInt64) {
        self.stack = stack
        self.database = database
        self.seed = seed
        generator = SeededGenerator(seed: seed)
        ownBizType = "MODEL-\(seed)"
        users = (0..<2).map { "model-\(seed)-u\($0)" }
        let systems = ["iOS", "Android", "iOS"]
        let models = systems.enumerated().map {
            RuleBook.Device(name: "model-\(seed)-d\($0.offset)", system: $0.element, user: nil)
        }
        devices = models.map { ModelDevice(stack, name: $0.name, system: $0.system) }
        var rules = Self.sharedRules
        rules[ownBizType] = .init(threshold: 5)
        book = RuleBook(rules: rules, devices: models)
    }

    /// Executes this number of random operations.
    ///
    /// - Throws: `Failure` with the seed and the last operations at the first difference.
    func run(operations: Int) async throws {
        let created = try await stack.tool([
            "config", "create", ownBizType, "--instance", Stack.instance, "--repush", "5",
        ])
        guard created.status == 0 else { throw Failure(created.output) }
        do {
            try await withThrowingDiscardingTaskGroup { group in
                for number in 0..<operations {
                    operation = number
                    try await step(&group)
                }
                for device in devices { device.leave() }
            }
        } catch {
            throw Failure("seed \(seed), operation \(operation): \(error); before it: \(log.suffix(12))")
        }
    }

    private func step(_ group: inout ThrowingDiscardingTaskGroup<any Error>) async throws {
        let index = Int.random(in: devices.indices, using: &generator)
        let isConnected = book.devices[index].isConnected
        switch Int.random(in: 0..<200, using: &generator) {
        case 0..<144: try await push()
        case 144..<180 where isConnected: try await disconnect(index)
        case 144..<180: try await connect(index, &group)
        case 180..<193 where isConnected: try await bind(index)
        case 180..<193: reinstall(index)
        case 193: try await pushAndLetExpire()
        default: try await switchOwnConfiguration()
        }
        try await compare()
    }

    // MARK: Operations

    /// - Parameter until: the end of its validity; nil: far in the future.
    /// - Returns: its channel and key; nil when it was refused or a repeat.
    @discardableResult
    private func push(until: Date? = nil) async throws -> (channel: RuleBook.Channel, key: String)? {
        let bizType = pick(Array(book.rules.keys).sorted())
        let isForDevices = book.rules[bizType]?.isForDevices ?? false
        let target = isForDevices ? pick(book.devices.map(\.name)) : pick(users)
        let channel = RuleBook.Channel(bizType: bizType, target: target)
        let known = book.channels[channel]?.map(\.key) ?? []
        let isRepeat = until == nil && !known.isEmpty && Int.random(in: 0..<10, using: &generator) == 0
        let key = isRepeat ? pick(known) : "\(seed)-\(operation)"
        let system = isRepeat ? nil : pick([nil, nil, "iOS", "Android"])
        let api = Int.random(in: 0...1, using: &generator)
        logStep("push \(bizType) to \(target) key \(key) for \(system ?? "all")")
        let expected = book.push(bizType, to: target, key: key, system: system)
        var more: [String: String] = [:]
        more["osType"] = system
        more["validTimeEnd"] = until.map { "\(Int64($0.timeIntervalSince1970 * 1_000))" }
        let answer = await Caller(apis: stack.apis).call(
            bizType, to: target, id: key, payload: key, more: more, api: api)
        guard let answer, answer.msg == expected else {
            throw Failure("the answer is \(answer?.msg ?? "none"), not \(expected); \(answer?.detail ?? "")")
        }
        guard let id = answer.oplogId else { return nil }
        if let first = ids[channel]?[key], first != id { throw Failure("id \(id), but the first call's was \(first)") }
        ids[channel, default: [:]][key] = id
        return isRepeat ? nil : (channel, key)
    }

    /// Makes a push whose validity ends before the next operation.
    private func pushAndLetExpire() async throws {
        let end = Date.now.addingTimeInterval(2.5)
        guard let (channel, key) = try await push(until: end) else { return }
        try await compare()
        try await eventually("its time has passed", within: .seconds(5)) { Date.now > end }
        logStep("\(key) has expired")
        book.expire(key, of: channel)
    }

    private func connect(_ index: Int, _ group: inout ThrowingDiscardingTaskGroup<any Error>) async throws {
        let user = pick([users[0], users[0], users[1], nil])
        let gateway = Int.random(in: 0...1, using: &generator)
        let device = devices[index]
        logStep("connect \(device.name) at \(gateway) as \(user ?? "nobody")")
        try await waitForPositions()
        book.connect(index, user: user)
        group.addTask { try await device.stay(gateway: gateway, user: user) }
        try await eventually("\(device.name) is caught up", within: .seconds(20)) { device.isCaughtUp(user) }
    }

    private func bind(_ index: Int) async throws {
        let user = pick([users[0], users[1], nil])
        guard user != book.devices[index].user else { return }
        logStep("bind \(user ?? "nobody") on \(devices[index].name)")
        try await waitForPositions()
        book.bind(index, user: user)
        try devices[index].bind(user)
        try await eventually("\(devices[index].name) is bound", within: .seconds(20)) {
            devices[index].isCaughtUp(user)
        }
    }

    private func disconnect(_ index: Int) async throws {
        let device = devices[index]
        logStep("disconnect \(device.name)")
        try await waitForPositions()
        book.disconnect(index)
        device.leave()
        let sql = "SELECT device_id FROM device_session WHERE device_id = '\(device.name)'"
        try await eventually("\(device.name) is gone", within: .seconds(20)) {
            guard device.isAway else { return false }
            return try await database.rows(sql, columns: 1).isEmpty
        }
        device.forget()
    }

    private func reinstall(_ index: Int) {
        logStep("re-install \(devices[index].name)")
        book.reinstall(index)
        devices[index].reinstall()
    }

    private func switchOwnConfiguration() async throws {
        let isOnline = !(book.rules[ownBizType]?.isOnline ?? true)
        let state = isOnline ? "online" : "offline"
        logStep("\(ownBizType) \(state)")
        book.setOnline(isOnline, ownBizType)
        let outcome = try await stack.tool([
            "config", state, ownBizType, "--instance", Stack.instance,
        ])
        guard outcome.status == 0 else { throw Failure(outcome.output) }
        // A dry run stores nothing.
        func isRefused(_ api: Int) async -> Bool? {
            await Caller(apis: stack.apis).call(
                ownBizType, to: users[0], id: "dry", payload: "dry", api: api, query: "&dryRun=true"
            ).map { $0.msg == "BIZ_NOT_ONLINE" }
        }
        for api in stack.apis.indices {
            if isOnline {
                // Before an API refuses a push, it asks for the change.
                guard await isRefused(api) != true else { throw Failure("API \(api) refused a push after online") }
            } else {
                try await eventually("API \(api) refuses pushes", within: .seconds(10)) {
                    await isRefused(api) == true
                }
            }
        }
    }

    // MARK: Comparison

    private func compare() async throws {
        for (device, model) in zip(devices, book.devices) {
            let expected = model.shown.filter { !$0.value.isEmpty }
            try await eventually(
                "\(device.name) received \(tail(device.shown)), not \(tail(expected))", within: .seconds(10)
            ) { device.shown == expected }
        }
    }

    /// Waits for the shared positions: the next receiver depends on them.
    private func waitForPositions() async throws {
        let sql = """
            SELECT c.biz_type, c.target, max(p.oplog_id)::text
            FROM channel c JOIN sync_point p ON p.channel_id = c.channel_id
            WHERE c.target LIKE 'model-\(seed)-%' GROUP BY 1, 2
            """
        try await eventually("positions are recorded", within: .seconds(10)) {
            var recorded: [RuleBook.Channel: Int64] = [:]
            for row in try await database.rows(sql, columns: 3) {
                let channel = RuleBook.Channel(bizType: row[0] ?? "", target: row[1] ?? "")
                recorded[channel] = row[2].flatMap { Int64($0) }
            }
            return book.sharedPositions.allSatisfy { channel, position in
                guard position > 0, let entries = book.channels[channel], let ids = ids[channel],
                    let reached = recorded[channel]
                else { return position == 0 }
                // The position is at the last oplog, or above it where a repeat has drawn an id.
                let next = entries.dropFirst(position).first.flatMap { ids[$0.key] } ?? .max
                return ids[entries[position - 1].key].map { ($0..<next).contains(reached) } ?? false
            }
        }
    }

    private func tail(_ shown: [RuleBook.Channel: [String]]) -> String {
        shown.map { "\($0.key.bizType)/\($0.key.target): \($0.value.count) to \($0.value.suffix(3))" }.sorted()
            .joined(separator: ", ")
    }

    private func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &generator)]
    }

    private func logStep(_ text: String) { log.append("\(operation) \(text)") }
}
