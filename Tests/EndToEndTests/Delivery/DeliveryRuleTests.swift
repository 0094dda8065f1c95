import DeviceProtocol
import Foundation
import Glibc
import MobileSync
import TestSupport
import Testing

extension RunningSystem {
    /// The rows of the specification's delivery rules; a test's name begins with the row's number.
    ///
    /// A later push of another Sync ID, the marker, shows that an earlier push is not delivered.
    @Suite("Delivery rules")
    struct DeliveryRuleTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        @Test("D6: non-persistent data reaches only the devices that are connected now")
        func nonPersistent() async throws {
            let device = TestDevice(stack, user: "d6-u", device: "d6-d")
            try await push("PRESENCE-PING", to: "d6-u", ["missed"], expecting: "NOT_ONLINE")
            try await device.connected {
                try await push("PRESENCE-PING", to: "d6-u", ["live"], expecting: "SUCCESS")
                try await mark(device)
            }
            try await push("PRESENCE-PING", to: "d6-u", ["missed again"], expecting: "NOT_ONLINE")
            try await device.connected { try await mark(device) }
            #expect(device.payloads("PRESENCE-PING") == ["live"])
        }

        @Test("H4: a gateway that does not answer for non-persistent data causes SYSTEM_ERROR, never NOT_ONLINE")
        func silentGateway() async throws {
            let device = TestDevice(stack, user: "h4-u", device: "h4-d")
            let gateway = try stack.process("gateway-0")
            try await device.connected {
                gateway.signal(SIGSTOP)
                let answer = await caller.call("PRESENCE-PING", to: "h4-u", id: "1", payload: "1")
                gateway.signal(SIGCONT)
                #expect(answer?.success == false && answer?.msg == "SYSTEM_ERROR" && answer?.retryable == true)
                #expect(
                    await caller.call("PRESENCE-PING", to: "h4-u", id: "1", payload: "1")?.msg == "DUPLICATED_BIZ_ID")
                try await mark(device)
            }
        }

        @Test("H4, D16: a paused gateway's devices are offline when its lease ends; after the pause no data is lost")
        func pausedGateway() async throws {
            let device = TestDevice(stack, user: "lease-u", device: "lease-d")
            let gateway = try stack.process("gateway-1")
            try await device.connected(gateway: 1) {
                gateway.signal(SIGSTOP)
                defer { gateway.signal(SIGCONT) }
                var pushed: [String] = []
                try await eventually("the lease has ended", within: .seconds(15)) {
                    let id = "lease-\(pushed.count)"
                    pushed.append(id)
                    return await caller.call("UCHAT", to: "lease-u", id: id, payload: id)?.msg == "NOT_ONLINE"
                }
                gateway.signal(SIGCONT)
                try await shows(device, "UCHAT", pushed)
            }
        }

        @Test("R8: while a writer is paused, the gateways keep their leases: no connected device counts as offline")
        func pausedWriter() async throws {
            let users = ["paused-writer-0", "paused-writer-1"]
            let devices = users.map { TestDevice(stack, user: $0, device: "\($0)-d") }
            let writer = try stack.process("writer-0")
            try await devices[0].connected(gateway: 0) {
                try await devices[1].connected(gateway: 1) {
                    var messages: [[String?]] = [[], []]
                    writer.signal(SIGSTOP)
                    defer { writer.signal(SIGCONT) }
                    // Longer than a lease and the time until the other writer removes it.
                    let end = ContinuousClock.now + .seconds(12)
                    while ContinuousClock.now < end {
                        for (number, user) in users.enumerated() {
                            let id = "\(user)-\(messages[number].count)"
                            messages[number].append(await caller.call("UCHAT", to: user, id: id, payload: id)?.msg)
                        }
                    }
                    for answers in messages {
                        #expect(answers.contains("SUCCESS") && !answers.contains("NOT_ONLINE"), "\(answers)")
                    }
                }
            }
        }

        @Test("V2: a tenant behind a mobile gateway is called through it: valid sessions receive, others do not")
        func mobileGateway() async throws {
            var caller = caller
            caller.instance = Stack.mobileGatewayInstance
            for (session, isValid) in [("good", true), ("bad", false)] {
                let user = "v2-\(session)"
                let device = TestDevice(
                    stack, user: user, device: "\(user)-d", session: session, instance: Stack.mobileGatewayInstance)
                try await device.connected {
                    _ = try await caller.push("TRADE", to: user, id: user, payload: "checked")
                    _ = try await caller.push("UCHAT", to: user, id: user, payload: "marker")
                    if isValid { try await shows(device, "TRADE", ["checked"]) }
                    try await shows(device, "UCHAT", ["marker"])
                    if !isValid {
                        try await eventually("the app is notified", within: .seconds(10)) {
                            device.events.contains { if case .sessionInvalid = $0 { true } else { false } }
                        }
                        #expect(device.payloads("TRADE").isEmpty)
                    }
                }
            }
        }

        @Test("H6: a batch keeps the order of its items to each target, and a repeat stores nothing")
        func batch() async throws {
            let users = ["h6-a", "h6-b"]
            let devices = users.map { TestDevice(stack, user: $0, device: "\($0)-d") }
            let items = (0..<500).map { ("UCHAT", users[$0 % 2], "h6-\($0)") }
            try await devices[0].connected {
                let answers = try await caller.batch(items)
                let half = answers.indices.map { $0.isMultiple(of: 2) ? "SUCCESS" : "NOT_ONLINE" }
                #expect(answers.map(\.msg) == half)
                let again = try await caller.batch(items, api: 1)
                #expect(again.allSatisfy { $0.msg == "DUPLICATED_BIZ_ID" })
                #expect(again.map(\.oplogId) == answers.map(\.oplogId))
                try await shows(devices[0], "UCHAT", items.map(\.2).enumerated().filter { $0.0 % 2 == 0 }.map(\.1))
            }
            try await devices[1].connected {
                try await shows(devices[1], "UCHAT", items.map(\.2).enumerated().filter { $0.0 % 2 == 1 }.map(\.1))
            }
        }

        @Test("D7: every device of the user gets everything; a new one and a re-installed one start at the beginning")
        func multiDevice() async throws {
            let first = TestDevice(stack, user: "d7-u", device: "d7-a")
            let second = TestDevice(stack, user: "d7-u", device: "d7-b")
            try await first.connected {
                try await second.connected(gateway: 1) {
                    for payload in ["1", "2"] {
                        _ = try await caller.push("UCHAT", to: "d7-u", id: "d7-\(payload)", payload: payload)
                    }
                    for device in [first, second] { try await shows(device, "UCHAT", ["1", "2"]) }
                }
            }
            let new = TestDevice(stack, user: "d7-u", device: "d7-c")
            let reinstalled = TestDevice(stack, user: "d7-u", device: "d7-a", install: 1)
            for device in [new, reinstalled] {
                try await device.connected { try await shows(device, "UCHAT", ["1", "2"]) }
            }
        }

        @Test(
            "D8: only the last device that bound receives; stored oplogs go to no other; the owner may be offline")
        func singleDevice() async throws {
            let old = TestDevice(stack, user: "d8-u", device: "d8-a")
            let new = TestDevice(stack, user: "d8-u", device: "d8-b")
            try await old.connected {
                try await push("SINGLE-USER", to: "d8-u", ["1"], expecting: "SUCCESS")
                try await shows(old, "SINGLE-USER", ["1"])
                try await new.connected(gateway: 1) {
                    try await push("SINGLE-USER", to: "d8-u", ["2"], expecting: "SUCCESS")
                    try await shows(new, "SINGLE-USER", ["2"])
                    try await mark(old)
                }
                // The owner disconnects and stays the owner.
                try await eventually("the owner is gone", within: .seconds(10)) {
                    let id = UUID().uuidString
                    return await caller.call("SINGLE-USER", to: "d8-u", id: id, payload: id)?.msg == "NOT_ONLINE"
                }
                try await push("SINGLE-USER", to: "d8-u", ["3"], expecting: "NOT_ONLINE")
                try await mark(old)
                #expect(old.payloads("SINGLE-USER") == ["1"])
            }
            try await old.connected {
                try await eventually("the data from the time without a device", within: .seconds(10)) {
                    old.payloads("SINGLE-USER").last == "3"
                }
            }
            let reinstalled = TestDevice(stack, user: "d8-u", device: "d8-b", install: 1)
            try await reinstalled.connected { try await mark(reinstalled) }
            #expect(reinstalled.payloads("SINGLE-USER") == [])
        }

        @Test("D8: many changes of the owner under load: stored oplogs go to no other device; all arrive in order")
        func handOvers() async throws {
            let (caller, database) = (caller, stack.database())
            func stored() async throws -> Int64 {
                let sql = """
                    SELECT coalesce(max(p.oplog_id), 0)::text FROM channel c LEFT JOIN sync_point p USING (channel_id)
                    WHERE c.target = 'd8h-u'
                    """
                return Int64(try await database.rows(sql, columns: 1)[0][0] ?? "") ?? 0
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for number in 0..<150 {
                        _ = try await caller.push("SINGLE-USER", to: "d8h-u", id: "\(number)", payload: "\(number)")
                    }
                }
                // The next device connects to one gateway while the last one is still connected to the other.
                var devices: [RawDevice] = []
                for round in 0..<12 {
                    let known = try await stored()
                    let device = try await RawDevice.connect(
                        stack, gateway: round % 2, device: "d8h-\(round % 2)", user: "d8h-u")
                    try await device.isCaughtUp()
                    let batches = device.batches.filter { $0.bizType == "SINGLE-USER" }
                    let given = batches.flatMap(\.entries).map(\.oplogID)
                    #expect(given.allSatisfy { $0 > known }, "round \(round): \(given) after \(known)")
                    #expect(given == given.sorted() && Set(given).count == given.count, "round \(round)")
                    // An oplog that no device has stored goes to the next device.
                    if round % 3 < 2, let last = batches.last {
                        try await device.acknowledge(last)
                        try await eventually("the acknowledgement is recorded", within: .seconds(10)) {
                            try await stored() >= last.upto
                        }
                    }
                    devices.append(device)
                    if devices.count > 1 { try? await devices.removeFirst().disconnect() }
                }
                try await group.waitForAll()
                for device in devices { try? await device.disconnect() }
            }
            let known = try await stored()
            let last = try await RawDevice.connect(stack, device: "d8h-0", user: "d8h-u")
            try await last.isCaughtUp()
            #expect(max(known, last.batches.last?.upto ?? 0) == 150, "the newest has arrived")
            try await last.disconnect()
            await database.close()
        }

        @Test("D9: a device's data arrives once, with any user, and not again after a re-install")
        func deviceDimension() async throws {
            try await push("DEVICE-LOCK", to: "d9-d", ["lock"], expecting: "NOT_ONLINE")
            let device = TestDevice(stack, user: "d9-u", device: "d9-d")
            try await device.connected { try await shows(device, "DEVICE-LOCK", ["lock"]) }
            let reinstalled = TestDevice(stack, user: "d9-v", device: "d9-d", install: 1)
            try await reinstalled.connected {
                try await push("DEVICE-LOCK", to: "d9-d", ["unlock"], expecting: "SUCCESS")
                try await shows(reinstalled, "DEVICE-LOCK", ["unlock"])
            }
        }

        @Test(
            "D10: a backlog brings only the newest of the threshold, or All; while connected, nothing is discarded")
        func threshold() async throws {
            let device = TestDevice(stack, user: "d10-u", device: "d10-d")
            let chat = (1...150).map { "c\($0)" }
            try await push("SINGLE-USER", to: "d10-u", (1...15).map(String.init), expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "d10-u", chat, expecting: "NOT_ONLINE")
            try await device.connected {
                try await shows(device, "SINGLE-USER", (6...15).map(String.init))
                try await shows(device, "UCHAT", chat)
                try await push("SINGLE-USER", to: "d10-u", (16...40).map(String.init), expecting: "SUCCESS")
                try await shows(device, "SINGLE-USER", (6...40).map(String.init))
            }
        }

        @Test("D11: no push is sent after its end; a push with an end in the past is accepted and never delivered")
        func validity() async throws {
            let device = TestDevice(stack, user: "d11-u", device: "d11-d")
            let answer = await caller.call(
                "UCHAT", to: "d11-u", id: "past", payload: "past", more: ["validTimeEnd": "1000000000000"])
            #expect(answer?.msg == "NOT_ONLINE" && answer?.detail?.contains("past") == true)
            let latest = Int64((Date.now.timeIntervalSince1970 + 30 * 86_400) * 1_000)
            for query in ["&dryRun=true", ""] {
                let capped = await caller.call(
                    "UCHAT", to: "d11-other", id: "late", payload: "late", more: ["validTimeEnd": "9999999999999"],
                    query: query)
                let end = try #require(capped?.detail?.firstMatch(of: /the push is valid until (\d{13})/))
                let milliseconds = try #require(Int64(end.1))
                #expect(abs(milliseconds - latest) < 60_000, "\(query)")
            }
            let end = Date.now.addingTimeInterval(2)
            try await push(
                "UCHAT", to: "d11-u", ["short"], more: ["validTimeEnd": "\(Int64(end.timeIntervalSince1970 * 1_000))"],
                expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "d11-u", ["long"], expecting: "NOT_ONLINE")
            try await eventually("the end has come", within: .seconds(5)) { Date.now > end }
            try await device.connected { try await mark(device) }
            #expect(device.payloads("UCHAT").first == "long")
            #expect(!device.payloads("UCHAT").contains("past"))
        }

        @Test("D12: restrictions to system and version hold for backlog and new data; skipped oplogs stay skipped")
        func targeting() async throws {
            let restrictions: [(String, [String: String])] = [
                ("ios", ["osType": "iOS"]), ("android", ["osType": "android"]), ("from 2", ["appMinVersion": "2"]),
                ("to 1.9", ["appMaxVersion": "1.9"]),
                ("1.10 to 1.10", ["appMinVersion": "1.10", "appMaxVersion": "1.10.0"]),
                ("everyone", [:]),
            ]
            let phone = TestDevice(stack, user: "d12-u", device: "d12-a", operatingSystem: "iOS", appVersion: "1.10")
            let other = TestDevice(
                stack, user: "d12-u", device: "d12-b", operatingSystem: "HarmonyOS", appVersion: "unknown")
            try await phone.connected {
                for (payload, more) in restrictions {
                    _ = await caller.call("UCHAT", to: "d12-u", id: payload, payload: payload, more: more)
                }
                try await mark(phone)
            }
            let expected = ["ios", "1.10 to 1.10", "everyone"]
            #expect(Array(phone.payloads("UCHAT").prefix(3)) == expected && phone.payloads("UCHAT").count == 4)
            try await other.connected { try await mark(other) }
            #expect(other.payloads("UCHAT").first == "everyone" && other.payloads("UCHAT").count == 3)
            // The same device with another app version: a skipped oplog stays skipped.
            let updated = TestDevice(stack, user: "d12-u", device: "d12-a", operatingSystem: "iOS", appVersion: "2.0")
            try await updated.connected { try await mark(updated) }
            #expect(updated.payloads("UCHAT").count == 2, "the marker of the other device, and its own")
        }

        @Test("D17: offline refuses and withholds at once, online resumes, a deletion drops data and frees keys")
        func lifeCycle() async throws {
            let device = TestDevice(stack, user: "d17-u", device: "d17-d")
            try await configure("create", "LIFE-CYCLE", "--repush", "all")
            try await device.connected {
                try await push("LIFE-CYCLE", to: "d17-u", ["1"], expecting: "SUCCESS")
                try await shows(device, "LIFE-CYCLE", ["1"])
            }
            try await push("LIFE-CYCLE", to: "d17-u", ["2", "3"], expecting: "NOT_ONLINE")
            try await configure("offline", "LIFE-CYCLE")
            for api in 0...1 {
                let refused = await caller.call("LIFE-CYCLE", to: "d17-u", id: "4", payload: "4", api: api)
                #expect(refused?.msg == "BIZ_NOT_ONLINE")
            }
            try await device.connected {
                try await mark(device)
                #expect(device.payloads("LIFE-CYCLE") == ["1"])
                try await configure("online", "LIFE-CYCLE")
                try await shows(device, "LIFE-CYCLE", ["1", "2", "3"])
                try await push("LIFE-CYCLE", to: "d17-u", ["4"], expecting: "SUCCESS")
                try await shows(device, "LIFE-CYCLE", ["1", "2", "3", "4"])
            }
            try await push("LIFE-CYCLE", to: "d17-u", ["dropped"], expecting: "NOT_ONLINE")
            await #expect(throws: Failure.self) { try await configure("delete", "LIFE-CYCLE") }
            try await configure("offline", "LIFE-CYCLE")
            try await configure("delete", "LIFE-CYCLE")
            try await configure("create", "LIFE-CYCLE", "--repush", "all")
            let before = device.received.filter { $0.bizType == "LIFE-CYCLE" }.map(\.oplogID).max() ?? 0
            try await push("LIFE-CYCLE", to: "d17-u", ["1"], expecting: "NOT_ONLINE")
            try await device.connected { try await shows(device, "LIFE-CYCLE", ["1", "2", "3", "4", "1"]) }
            #expect(device.received.last { $0.bizType == "LIFE-CYCLE" }.map(\.oplogID) ?? 0 > before)
        }

        @Test(
            "D17: stored data keeps its scope when the configuration changes: one sync point, then one per device")
        func changedRules() async throws {
            let devices = ["a", "b", "c"].map { TestDevice(stack, user: "d17s-u", device: "d17s-\($0)") }
            try await configure("create", "SWITCH", "--repush", "all")
            try await devices[0].connected {
                try await push("SWITCH", to: "d17s-u", ["1", "2"], expecting: "SUCCESS")
                try await shows(devices[0], "SWITCH", ["1", "2"])
            }
            // From multi-device to single-device: from the highest sync point of any device.
            try await configure("set", "SWITCH", "--no-multi-device")
            try await push("SWITCH", to: "d17s-u", ["3"], expecting: "NOT_ONLINE")
            try await devices[1].connected { try await shows(devices[1], "SWITCH", ["3"]) }
            // From single-device to multi-device: each device from its own sync point.
            try await configure("set", "SWITCH", "--multi-device")
            try await devices[0].connected { try await shows(devices[0], "SWITCH", ["1", "2", "3"]) }
            try await devices[2].connected { try await shows(devices[2], "SWITCH", ["1", "2", "3"]) }
            // Stored data is still delivered when new pushes are no longer stored.
            try await push("SWITCH", to: "d17s-u", ["4"], expecting: "NOT_ONLINE")
            try await configure("set", "SWITCH", "--no-persistent")
            try await push("SWITCH", to: "d17s-u", ["5"], expecting: "NOT_ONLINE")
            try await devices[0].connected {
                try await shows(devices[0], "SWITCH", ["1", "2", "3", "4"])
                try await push("SWITCH", to: "d17s-u", ["6"], expecting: "SUCCESS")
                try await shows(devices[0], "SWITCH", ["1", "2", "3", "4", "6"])
            }
        }

        @Test(
            "D17: offline and online in turn under load: each answer is true, nothing is lost or doubled")
        func flipping() async throws {
            let device = TestDevice(stack, user: "d17f-u", device: "d17f-d")
            try await configure("create", "FLIP", "--repush", "all")
            try await device.connected {
                let accepted = try await withThrowingTaskGroup(of: [String].self) { group in
                    group.addTask {
                        var accepted: [String] = []
                        for number in 0..<400 {
                            let answer = await caller.call(
                                "FLIP", to: "d17f-u", id: "\(number)", payload: "\(number)", api: number % 2)
                            if answer?.success == true { accepted.append("\(number)") }
                        }
                        return accepted
                    }
                    for _ in 0..<3 {
                        try await configure("offline", "FLIP")
                        try await configure("online", "FLIP")
                    }
                    return try await group.next() ?? []
                }
                #expect(accepted.count < 400 && !accepted.isEmpty, "oplogs arrived while it was offline")
                try await shows(device, "FLIP", accepted)
            }
        }

        @Test(
            "D1: an idle connection has no traffic; D2: single calls one after the other are delivered in their order")
        func idleThenOrder() async throws {
            let device = try await RawDevice.connect(stack, device: "d1-d", user: "d1-u")
            try await device.isCaughtUp()
            let frames = device.received.count
            let other = TestDevice(stack, user: "d1-other", device: "d1-other")
            try await other.connected { for _ in 0..<10 { try await mark(other) } }
            #expect(
                device.received.dropFirst(frames).allSatisfy {
                    if case .sessionState? = $0.body { true } else { false }
                })
            for number in 0..<50 {
                _ = try await caller.push("UCHAT", to: "d1-u", id: "d1-\(number)", payload: "\(number)", first: number)
            }
            try await device.waits(for: "all of them") { $0.flatMap(\.push.batches).flatMap(\.entries).count == 50 }
            let entries = device.batches.flatMap(\.entries)
            #expect(entries.map { String(decoding: $0.payload, as: UTF8.self) } == (0..<50).map(String.init))
            #expect(entries.map(\.oplogID) == entries.map(\.oplogID).sorted())
            try await device.disconnect()
        }

        @Test("H8: every process reports liveness, readiness and metrics")
        func health() async throws {
            for port in stack.healthPorts {
                for path in ["livez", "readyz", "metrics"] {
                    let (status, body) = try await stack.get("http://127.0.0.1:\(port)/\(path)")
                    #expect(status == 200, "\(port)/\(path)")
                    if path == "metrics" { #expect(body.contains("mss_build_info")) }
                }
            }
            for api in stack.apis {
                let (status, body) = try await stack.get("http://127.0.0.1:\(api)/openapi.json")
                #expect(status == 200 && body.contains("/webapi/sync/trace"))
            }
        }

        @Test("D17: a stricter rule holds for all data that is sent after the tool has reported it in force")
        func tightening() async throws {
            let device = TestDevice(stack, user: "d17t-u", device: "d17t-d", session: "bad-session")
            try await configure("create", "TIGHTEN")
            try await device.connected {
                for round in 1...3 {
                    try await push("TIGHTEN", to: "d17t-u", ["open \(round)"], expecting: "SUCCESS")
                    try await eventually("round \(round) is shown", within: .seconds(10)) {
                        device.payloads("TIGHTEN").last == "open \(round)"
                    }
                    try await configure("set", "TIGHTEN", "--check-session")
                    try await push("TIGHTEN", to: "d17t-u", ["secret \(round)"], expecting: "NOT_ONLINE")
                    try await mark(device)
                    #expect(device.payloads("TIGHTEN").last == "open \(round)")
                    // Deletes the configuration with its waiting data, so that it does not arrive in the next round.
                    try await configure("offline", "TIGHTEN")
                    try await configure("delete", "TIGHTEN")
                    try await configure("create", "TIGHTEN")
                }
            }
            #expect(device.payloads("TIGHTEN") == ["open 1", "open 2", "open 3"])
        }
    }
}
