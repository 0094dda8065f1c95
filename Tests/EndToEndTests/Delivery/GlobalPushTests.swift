import DeviceProtocol
import Foundation
import MobileSync
import TestSupport
import Testing

extension SteadySystem {
    @Suite("Global push")
    struct GlobalPushTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis, instance: Stack.globalInstance)
        }

        private func device(_ name: String, user: String = "u") -> TestDevice {
            TestDevice(stack, user: "\(name)-\(user)", device: name, instance: Stack.globalInstance)
        }

        @Test("D15: it is delivered when a device connects, not at once to a connected app, once to each device")
        func whenConnecting() async throws {
            let present = device("d15-a")
            let marker = UUID().uuidString
            try await present.connected {
                try await push("NEWS", to: nil, [marker], expecting: "SUCCESS")
                try await mark(present)
                #expect(!present.payloads("NEWS").contains(marker))
            }
            let later = device("d15-b")
            for device in [present, later, present, later] {
                try await device.connected(gateway: 1) { try await mark(device) }
            }
            for device in [present, later] {
                #expect(device.payloads("NEWS").filter { $0 == marker }.count == 1)
            }
        }

        @Test(
            "D15: one oplog on disk for all devices; each connecting device gets the newest of the threshold, once")
        func crowd() async throws {
            let count = TestGear.count(60, soak: 5_000)
            let database = stack.database()
            let sql = "SELECT count(*)::text FROM oplog o JOIN channel c USING (channel_id) WHERE c.biz_type = 'NEWS'"
            let before = try await database.rows(sql, columns: 1).first?.first
            let payloads = (0..<15).map { "crowd-\($0)-\(UUID().uuidString)" }
            try await push("NEWS", to: nil, payloads, expecting: "SUCCESS")
            let after = try await database.rows(sql, columns: 1).first?.first
            #expect(Int((after ?? nil) ?? "") == Int((before ?? nil) ?? "").map { $0 + 15 })
            await database.close()
            let devices = (0..<count).map { device("crowd-\($0)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                var waiting = devices.enumerated().makeIterator()
                func add() {
                    guard let (number, device) = waiting.next() else { return }
                    group.addTask {
                        for round in 0..<2 {
                            try await device.connected(gateway: number + round) {
                                try await shows(device, "NEWS", Array(payloads.suffix(10)))
                            }
                        }
                    }
                }
                for _ in 0..<30 { add() }
                while try await group.next() != nil { add() }
            }
        }

        @Test("D15: a global push for users reaches a device only when a user is bound")
        func forUsers() async throws {
            let payload = UUID().uuidString
            try await push("NEWS-USER", to: nil, [payload], expecting: "SUCCESS")
            let bound = device("d15-bound")
            try await bound.connected {
                try await eventually("it arrives", within: .seconds(10)) { bound.payloads("NEWS-USER").last == payload }
            }
            let raw = try await RawDevice.connect(stack, device: "d15-nobody", user: "") {
                $0.instanceID = Stack.globalInstance
            }
            try await raw.isCaughtUp()
            #expect(!raw.batches.contains { $0.bizType == "NEWS-USER" })
            try await raw.disconnect()
        }

        @Test("D15: an immediate push reaches every connected device at both gateways")
        func immediate() async throws {
            let devices = [device("now-a"), device("now-b")]
            try await devices[0].connected {
                try await devices[1].connected(gateway: 1) {
                    for number in 1...3 { try await push("NEWS-NOW", to: nil, ["now \(number)"], expecting: "SUCCESS") }
                    for device in devices { try await shows(device, "NEWS-NOW", ["now 1", "now 2", "now 3"]) }
                }
            }
        }

        @Test("H7: a global push that is recalled: devices without it never get it, the others get a tombstone")
        func recall() async throws {
            let (early, late) = (device("recall-a"), device("recall-b"))
            try await push("NEWS", to: nil, ["wrong", "right"], expecting: "SUCCESS")
            func shows(_ device: TestDevice, _ what: String, _ condition: () -> Bool) async throws {
                try await eventually("\(device.device): \(what), not \(device.received)", within: .seconds(10)) {
                    condition()
                }
            }
            try await early.connected {
                try await shows(early, "right") { early.payloads("NEWS").contains("right") }
            }
            let recalled = try await stack.tool([
                "recall", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.globalInstance,
                "--biz-type", "NEWS", "--id", "all-wrong",
            ])
            #expect(recalled.status == 0, "\(recalled.output)")
            try await early.connected {
                try await shows(early, "the tombstone") { early.received.contains { $0.recalls != nil } }
            }
            try await late.connected { try await shows(late, "right") { late.payloads("NEWS").last == "right" } }
            #expect(early.payloads("NEWS").contains("wrong") && !late.payloads("NEWS").contains("wrong"))
            #expect(!late.received.contains { $0.recalls != nil })
            try await explains("NEWS", to: nil, id: "all-wrong", device: "recall-b", "RECALLED")
            try await explains("NEWS", to: nil, id: "all-right", "DELIVERED")
            try await explains("NEWS", to: nil, id: "all-right", device: "recall-a", "DELIVERED")
        }

        @Test("D11: the instance's retention bounds validity, also of a push with no end or a later one")
        func retention() async throws {
            let database = stack.database()
            let later = "\(Int64(Date.now.timeIntervalSince1970 * 1_000) + 20 * 86_400_000)"
            try await push("UCHAT", to: "keep-u", ["short"], expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "keep-u", ["long"], more: ["validTimeEnd": later], expecting: "NOT_ONLINE")
            let rows = try await database.rows(
                """
                SELECT extract(day FROM o.valid_until - o.created_at)::text FROM oplog o JOIN channel c USING (channel_id)
                WHERE c.target = 'keep-u'
                """, columns: 1)
            await database.close()
            #expect(rows == [["2"], ["2"]])
        }
    }
}
