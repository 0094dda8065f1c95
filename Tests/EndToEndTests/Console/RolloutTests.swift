import Foundation
import MobileSync
import SyncModel
import TestSupport
import Testing

extension SteadySystem {
    @Suite("Staged roll-outs")
    struct RolloutTests: RuleSuite {
        private static let instance = "rollout_app"
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis, instance: Self.instance)
        }

        private func device(_ name: String) -> TestDevice {
            TestDevice(stack, user: "\(name)-u", device: name, instance: Self.instance)
        }

        private func tool(_ arguments: [String]) async throws -> String {
            let outcome = try await stack.tool(arguments)
            guard outcome.status == 0 else { throw Failure("\(arguments): \(outcome.output)") }
            return outcome.output
        }

        /// Runs a roll-out command of `mssctl`.
        private func rollout(_ what: String, _ bizType: String, _ id: String, _ more: String...) async throws -> String
        {
            try await tool(["rollout", what, "--instance", Self.instance, "--biz-type", bizType, "--id", id] + more)
        }

        private func prepare(_ bizType: String, isImmediate: Bool) async throws {
            _ = try await stack.tool(["instance", "create", Self.instance])
            _ = try await tool([
                "config", "create", bizType, "--instance", Self.instance, "--scope", "global", "--target", "device",
                "--repush", "all", isImmediate ? "--immediate" : "--no-immediate",
            ])
        }

        /// Connects each of the devices once, a few at a time, until it is caught up and has this number of pushes.
        private func visit(
            _ devices: [TestDevice], _ bizType: String, _ wanted: @escaping @Sendable (TestDevice) -> Int
        )
            async throws
        {
            try await withThrowingTaskGroup(of: Void.self) { group in
                var waiting = devices.enumerated().makeIterator()
                func add() {
                    guard let (number, device) = waiting.next() else { return }
                    group.addTask {
                        try await device.connected(gateway: number) {
                            try await eventually("\(device.device) has its own", within: .seconds(20)) {
                                device.payloads(bizType).count == wanted(device)
                            }
                        }
                    }
                }
                for _ in 0..<25 { add() }
                while try await group.next() != nil { add() }
            }
        }

        @Test(
            "a stage reaches its additional devices, connected or later; at the end each device has it exactly once")
        func everyone() async throws {
            try await prepare("WAVE", isImmediate: true)
            let plan = RolloutPlan(id: ThirdMessageID("wave"), stages: [1_500, 5_000, 10_000])
            let all = (0..<300).map { device("wave-\($0)") }
            let (present, coming, late) = (Array(all[..<60]), Array(all[60..<160]), Array(all[160...]))
            @Sendable func wanted(_ device: TestDevice, at stage: Int) -> Int {
                (1...stage).contains { plan.share(of: $0).contains(DeviceSlot(of: DeviceID(device.device))) } ? 1 : 0
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, device) in present.enumerated() {
                    group.addTask { try await device.stay(gateway: number) }
                }
                try await eventually("they are connected", within: .seconds(60)) {
                    present.allSatisfy { device in device.events.contains(.caughtUp(userID: device.user)) }
                }
                for stage in 1...3 {
                    let said =
                        stage == 1
                        ? try await rollout("start", "WAVE", "wave", "--stages", "15,50,100", "the wave")
                        : try await rollout("widen", "WAVE", "wave")
                    #expect(said.contains("stage \(stage) of 3"))
                    try await eventually("stage \(stage) reaches the connected devices", within: .seconds(30)) {
                        present.allSatisfy { $0.payloads("WAVE").count >= wanted($0, at: stage) }
                    }
                    try await visit(coming, "WAVE") { wanted($0, at: stage) }
                    for device in present + coming {
                        #expect(device.payloads("WAVE").count == wanted(device, at: stage), "\(device.device)")
                    }
                }
                try await visit(late, "WAVE") { _ in 1 }
                group.cancelAll()
            }
            #expect(all.allSatisfy { $0.payloads("WAVE") == ["the wave"] })
            let counts = (1...3).map { stage in
                all.count { plan.share(of: stage).contains(DeviceSlot(of: DeviceID($0.device))) }
            }
            #expect(counts.allSatisfy { $0 > 0 } && counts.reduce(0, +) == 300)
            try await eventually("figures say how many each stage reached", within: .seconds(30)) {
                let shown = try await rollout("show", "WAVE", "wave")
                return shown.contains("completed") && counts.allSatisfy { shown.contains("confirmed by \($0)") }
            }
            let first = plan.share(of: 1)
            let outside = try #require(all.first { !first.contains(DeviceSlot(of: DeviceID($0.device))) })
            try await explains("WAVE", to: nil, id: "wave~1", device: outside.device, "OUTSIDE_STAGE")
            let stage = try #require((2...3).first { wanted(outside, at: $0) == 1 })
            try await explains("WAVE", to: nil, id: "wave~\(stage)", device: outside.device, "DELIVERED")
        }

        @Test("paused, time makes no stage; resumed, it makes one; stopped, a device without the oplog never gets it")
        func pauseAndStop() async throws {
            try await prepare("TIDE", isImmediate: false)
            let plan = RolloutPlan(id: ThirdMessageID("tide"), stages: [5_000, 9_000, 10_000])
            let all = (0..<40).map { device("tide-\($0)") }
            func group(_ stage: Int) -> [TestDevice] {
                all.filter { plan.share(of: stage).contains(DeviceSlot(of: DeviceID($0.device))) }
            }
            let (early, later) = (Array(group(1).prefix(2)), Array(group(2).prefix(2)))
            #expect(early.count == 2 && later.count == 2)
            let database = stack.database()
            func passTime() async throws {
                try await database.execute("UPDATE rollout SET due_at = now() WHERE due_at IS NOT NULL")
            }
            let started = try await rollout(
                "start", "TIDE", "tide", "--stages", "50,90,100", "--every-minutes", "60", "x")
            #expect(started.contains("next at") && started.contains("stage 1 of 3"))
            #expect(try await rollout("start", "TIDE", "tide", "other").contains("nothing to do"))
            #expect(try await rollout("pause", "TIDE", "tide").contains("paused"))
            let refused = try await stack.tool(
                ["rollout", "widen", "--instance", Self.instance, "--biz-type", "TIDE", "--id", "tide"])
            #expect(refused.status != 0 && refused.output.contains("resume it first"))
            // Devices of existing stages still receive their oplogs.
            try await visit([early[0]], "TIDE") { _ in 1 }
            try await visit(later, "TIDE") { _ in 0 }
            try await passTime()
            #expect(try await rollout("resume", "TIDE", "tide").contains("stage 1 of 3"))
            try await passTime()
            try await eventually("the clock makes the next stage", within: .seconds(20)) {
                try await rollout("show", "TIDE", "tide").contains("stage 2 of 3")
            }
            try await visit([later[0]], "TIDE") { _ in 1 }
            #expect(try await rollout("stop", "TIDE", "tide").contains("stopped"))
            try await visit([early[1], later[1]] + group(3).prefix(1), "TIDE") { _ in 0 }
            for device in [early[0], later[0]] {
                try await device.connected {
                    try await eventually("\(device.device) receives the recall", within: .seconds(20)) {
                        device.received.contains { $0.recalls != nil }
                    }
                }
            }
            try await passTime()
            #expect(
                try await tool(["rollout", "list", "--instance", Self.instance]).contains("tide\tstopped\tstage 2 of 3")
            )
            let records = try await tool(["records", "list", "--instance", Self.instance])
            let actions = records.split(separator: "\n").filter { $0.contains("TIDE") }.map {
                $0.split(separator: "\t")[3]
            }
            #expect(
                actions == [
                    "stop-rollout", "widen-rollout", "resume-rollout", "pause-rollout", "start-rollout",
                    "create-configuration",
                ], "\(records)")
            await database.close()
        }
    }
}
