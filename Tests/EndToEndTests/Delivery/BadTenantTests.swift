import BusMessages
import Foundation
import MobileSync
import TestSupport
import Testing

extension RunningSystem {
    @Suite("Bad tenants on the running system")
    struct BadTenantTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        /// Stores instances, each with a checking configuration `TRADE` and an unchecked one `UCHAT`.
        private func apply(_ validators: [String: String]) async throws {
            let instances = validators.map { ["instanceId": $0.key, "validatorUrl": $0.value] }
            let configurations = validators.keys.flatMap { instance -> [[String: any Sendable]] in
                ["TRADE", "UCHAT"].map { bizType in
                    [
                        "instanceId": instance, "bizType": bizType, "description": "", "scope": "appointed",
                        "target": "user", "repush": "all", "checkSession": bizType == "TRADE",
                    ]
                }
            }
            let file = stack.folder.appending(path: "bad-\(UUID().uuidString).json")
            let data: [String: Any] = ["instances": instances, "configurations": configurations]
            try JSONSerialization.data(withJSONObject: data).write(to: file)
            let outcome = try await stack.tool(["apply", file.path])
            guard outcome.status == 0 else { throw Failure(outcome.output) }
        }

        @Test(
            "SEC12: with every bad endpoint no checked push is delivered, no call goes astray; honest tenants get all")
        func noneLetsThrough() async throws {
            let forbidden = try CountingListener(port: stack.badTenants.forbiddenPort)
            defer { forbidden.stop() }
            let table = stack.badTenants.table
            let honest = Dictionary(
                uniqueKeysWithValues: table.honest.enumerated().map { ("honest-\($0.offset)", $0.element) })
            let bad = Dictionary(uniqueKeysWithValues: table.bad.map { ("bad-\($0.key)", $0.value) })
            #expect(bad.count >= 30 && honest.count == 2)
            let all = honest.merging(bad) { $1 }
            try await apply(all)
            let devices = all.keys.map { TestDevice(stack, user: "u", device: "d-\($0)", instance: $0) }
            func push(_ number: Int) async throws {
                for instance in all.keys {
                    let caller = Caller(apis: stack.apis, instance: instance)
                    _ = try await caller.push("TRADE", to: "u", id: "t\(number)", payload: "secret")
                    _ = try await caller.push("UCHAT", to: "u", id: "c\(number)", payload: "chat")
                }
            }
            try await push(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, device) in devices.enumerated() {
                    group.addTask { try await device.stay(gateway: number) }
                }
                try await eventually("every device has the unchecked push", within: .seconds(30)) {
                    devices.allSatisfy { $0.payloads("UCHAT").count >= 1 }
                }
                for number in 1...3 { try await push(number) }
                try await eventually("every device has every unchecked push", within: .seconds(30)) {
                    devices.allSatisfy { $0.payloads("UCHAT").count == 4 }
                }
                try await eventually("the honest tenants' devices have every checked one", within: .seconds(30)) {
                    devices.filter { honest[$0.instance] != nil }.allSatisfy { $0.payloads("TRADE").count == 4 }
                }
                try await eventually("every bad tenant was asked", within: .seconds(30)) {
                    try await answers("unknown") + answers("invalid") >= bad.count
                }
                group.cancelAll()
            }
            for device in devices where bad[device.instance] != nil {
                #expect(device.payloads("TRADE").isEmpty, "\(device.instance)")
            }
            #expect(try await forbidden.isUntouched())
        }

        @Test("V5: tenants that answer slowly do not delay the requests about other tenants at the broker")
        func slowTenants() async throws {
            let slow = (0..<20).map { "late-\($0)" }
            let table = stack.badTenants.table
            var validators = Dictionary(uniqueKeysWithValues: slow.map { ($0, table.late) })
            validators["late-honest"] = table.honest[0]
            try await apply(validators)
            try await ValidationCaller.connected(stack) { caller in
                try await eventually("the validator knows the tenants", within: .seconds(10)) {
                    try await caller.answer("late-honest", session: "first").verdict == .valid
                }
                // More bodies than the validator prefetches.
                for instance in slow {
                    for session in 0..<20 { try caller.ask(instance, session: "s\(session)") }
                }
                #expect(try await caller.answer("late-honest", session: "second").verdict == .valid)
                let earlier = caller.answers.count { $0.instance != "late-honest" }
                #expect(earlier < 256, "\(earlier) slow replies arrived before the honest one")
                // On a busy machine some requests pass their deadline, and their verdict is unknown.
                try await eventually("all of the slow ones are answered", within: .seconds(60)) {
                    caller.answers.count { $0.instance != "late-honest" } == 400
                }
                let late = caller.answers.filter { $0.instance != "late-honest" }
                #expect(late.contains { $0.verdict == .valid } && !late.contains { $0.verdict == .invalid })
            }
        }

        /// The number of replies with this verdict from both validators so far.
        private func answers(_ verdict: String) async throws -> Int {
            var sum = 0
            for port in stack.healthPorts {
                let page = try await stack.get("http://127.0.0.1:\(port)/metrics").body
                let series = "mss_validator_answers_total{verdict=\"\(verdict)\"} "
                for line in page.split(separator: "\n") where line.hasPrefix(series) {
                    sum += Int(line.dropFirst(series.count)) ?? 0
                }
            }
            return sum
        }

        /// A measurement, not a test: `deploy/bench/bad-tenants.sh` prints it.
        @Test(
            "the honest tenant's response times, alone and beside the bad ones",
            .enabled(if: ProcessInfo.processInfo.environment["MSS_TEST_BENCH"] != nil, "a benchmark"))
        func times() async throws {
            let table = stack.badTenants.table
            let bad = Dictionary(uniqueKeysWithValues: table.bad.map { ("bench-\($0.key)", $0.value) })
            // The same number of sound tenants shows the effect of load alone.
            let sound = Dictionary(uniqueKeysWithValues: bad.keys.map { ("sound-\($0)", table.honest[0]) })
            try await apply(bad.merging(sound) { $1 }.merging(["bench-honest": table.honest[0]]) { $1 })
            let rounds: [(label: String, others: [String])] = [
                ("warming up", []), ("alone", []), ("beside \(sound.count) sound tenants", sound.keys.sorted()),
                ("beside \(bad.count) bad tenants", bad.keys.sorted()), ("alone again", []),
            ]
            try await ValidationCaller.connected(stack) { caller in
                try await eventually("the validator knows the tenants", within: .seconds(10)) {
                    try await caller.answer("bench-honest", session: "first").verdict == .valid
                }
                for (label, others) in rounds {
                    var durations: [Duration] = []
                    for number in 0..<1_000 {
                        // Each call asks about the next eight tenants, some hundreds of calls in a second.
                        for offset in 0..<8 where !others.isEmpty {
                            try caller.ask(others[(number * 8 + offset) % others.count], session: "\(number)")
                        }
                        let answer = try await caller.answer("bench-honest", session: "\(label) \(number)")
                        #expect(answer.verdict == .valid)
                        durations.append(answer.duration)
                    }
                    durations.sort()
                    let figures = [0.5, 0.99, 1].map { durations[min(999, Int($0 * 1_000))] / .milliseconds(1) }
                    let text = figures.map { ($0 * 100).rounded() / 100 }
                    print("BENCH honest tenant, \(label): median \(text[0]) ms, p99 \(text[1]) ms, max \(text[2]) ms")
                }
            }
        }
    }
}
