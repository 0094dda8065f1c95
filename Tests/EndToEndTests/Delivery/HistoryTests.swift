import DeviceProtocol
import Foundation
import SwiftProtobuf
import TestSupport
import Testing

extension SteadySystem {
    @Suite("History, summaries, suspended types, intervals")
    struct HistoryTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        @Test("history read backwards and forwards, page by page over 1,000 oplogs, equals the pushes")
        func wholeHistory() async throws {
            var pushed: [Int64] = []
            for start in [0, 500] {
                let items = (start..<start + 500).map { ("UCHAT", "hist-u", "hist-\($0)") }
                pushed += try await caller.batch(items).compactMap(\.oplogId)
            }
            let device = try await RawDevice.connect(stack, device: "hist-d", user: "hist-u")
            try await device.isCaughtUp()
            let sent = device.batches.filter { $0.bizType == "UCHAT" }.flatMap(\.entries)
            #expect(sent.map(\.oplogID) == pushed && pushed.count == 1_000)
            #expect(device.batches.allSatisfy { $0.passedOverUpto == 0 })
            #expect(try await device.wholeHistory("UCHAT", count: 100, oldestFirst: false) == sent.reversed())
            #expect(try await device.wholeHistory("UCHAT", count: 37, oldestFirst: true) == sent)
            // A range that is open at both ends.
            let range = try await device.history("UCHAT") {
                $0.after = pushed[9]
                $0.before = pushed[13]
            }
            #expect(range.entries.map(\.oplogID) == [pushed[12], pushed[11], pushed[10]] && !range.more)
            #expect(range.head == pushed[999] && range.kind == .user && range.bindNumber == 1)
            try await device.disconnect()
        }

        @Test("history contains the valid oplogs for the device, and is served where no push is sent any more")
        func contents() async throws {
            let (lost, kept) = (Date.now.addingTimeInterval(3), ["old", "targeted", "new"])
            try await push("UCHAT", to: "hc-u", ["old"], expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "hc-u", ["android"], more: ["osType": "Android"], expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "hc-u", ["targeted"], more: ["osType": "iOS"], expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "hc-u", ["version"], more: ["appMinVersion": "2"], expecting: "NOT_ONLINE")
            let end = ["validTimeEnd": "\(Int64(lost.timeIntervalSince1970 * 1_000))"]
            try await push("UCHAT", to: "hc-u", ["short"], more: end, expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "hc-u", ["recalled", "new"], expecting: "NOT_ONLINE")
            let recall = try await stack.tool([
                "recall", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.instance, "--biz-type",
                "UCHAT", "--to", "hc-u", "--id", "hc-u-recalled",
            ])
            #expect(recall.status == 0)
            let device = try await RawDevice.connect(stack, device: "hc-d", user: "hc-u")
            try await device.isCaughtUp()
            try await eventually("the short one has ended", within: .seconds(10)) { Date.now > lost }
            let page = try await device.history("UCHAT") { $0.oldestFirst = true }
            #expect(page.entries.map { String(decoding: $0.payload, as: UTF8.self) } == kept && !page.more)
            #expect(page.entries.allSatisfy { $0.recalls == 0 } && page.head > page.entries[2].oplogID)
            // A stored oplog is not pushed again, but history still contains it.
            for batch in device.batches { try await device.acknowledge(batch) }
            try await device.disconnect()
            let again = try await RawDevice.connect(stack, gateway: 1, device: "hc-d", user: "hc-u")
            try await again.isCaughtUp()
            #expect(try await again.history("UCHAT") { $0.oldestFirst = true }.entries == page.entries)
            let never = try await again.history("DEVICE-LOCK")
            #expect(never.refusal == .none && never.entries.isEmpty && never.kind == .device && never.bindNumber == 0)
            try await again.disconnect()
        }

        @Test("history is refused to ineligible requests: other owner, no valid session, suspended, unknown, offline")
        func refusals() async throws {
            for bizType in ["UCHAT", "SINGLE-USER", "TRADE-SECURE"] {
                try await push(bizType, to: "ref-u", [bizType], expecting: "NOT_ONLINE")
            }
            let bad = try await RawDevice.connect(stack, device: "ref-a", user: "ref-u") {
                $0.bind.sessionID = "bad-session"
            }
            try await bad.isCaughtUp()
            #expect(try await bad.history("SINGLE-USER").entries.count == 1, "it is the owner")
            let good = try await RawDevice.connect(stack, gateway: 1, device: "ref-b", user: "ref-u")
            try await good.isCaughtUp()
            #expect(try await bad.history("UCHAT").entries.count == 1)
            for bizType in ["SINGLE-USER", "TRADE-SECURE", "OFFLINE-DEMO", "NO-SUCH-TYPE"] {
                #expect(try await bad.history(bizType).refusal == .notEligible, "\(bizType)")
            }
            #expect(try await good.history("SINGLE-USER").entries.count == 1)
            try await eventually("the verdict is there", within: .seconds(10)) {
                try await good.history("TRADE-SECURE").entries.count == 1
            }
            try await good.suspend("UCHAT", "TRADE-SECURE")
            #expect(try await good.history("UCHAT").refusal == .notEligible)
            #expect(
                try await good.summary().channels.map(\.bizType).filter { $0 != "GLOBAL-SDK-CONFIG" } == ["SINGLE-USER"]
            )
            #expect(try await good.history("SINGLE-USER") { $0.count = 101 }.refusal == .invalid)
            #expect(try await good.history("SINGLE-USER") { $0.bindNumber = 2 }.refusal == .invalid)
            for device in [bad, good] { try await device.disconnect() }
        }

        @Test("a summary has the newest oplog and the backlog of each channel, page by page")
        func summary() async throws {
            try await push("UCHAT", to: "sum-u", ["1", "2"], expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "sum-u", ["no"], more: ["osType": "Android"], expecting: "NOT_ONLINE")
            try await push("DEVICE-LOCK", to: "sum-d", ["lock"], expecting: "NOT_ONLINE")
            let device = try await RawDevice.connect(stack, device: "sum-d", user: "sum-u")
            try await device.isCaughtUp()
            func channels() async throws -> [Mss_Device_V1_ChannelSummary] {
                var (channels, after) = ([Mss_Device_V1_ChannelSummary](), "")
                while true {
                    let page = try await device.summary(after: after, count: 1)
                    channels += page.channels
                    guard page.more, let last = page.channels.last else { break }
                    after = last.bizType
                }
                return channels.filter { $0.bizType != "GLOBAL-SDK-CONFIG" }
            }
            func texts(_ channels: [Mss_Device_V1_ChannelSummary]) -> [String] {
                channels.map { String(decoding: $0.last.payload, as: UTF8.self) }
            }
            let first = try await channels()
            #expect(first.map(\.bizType) == ["DEVICE-LOCK", "UCHAT"] && first.map(\.kind) == [.device, .user])
            #expect(
                first.map(\.waiting) == [1, 2] && first.map(\.syncPoint) == [0, 0] && texts(first) == ["lock", "2"])
            for batch in device.batches { try await device.acknowledge(batch) }
            try await eventually("nothing waits", within: .seconds(10)) {
                try await channels().allSatisfy { $0.waiting == 0 && $0.syncPoint == $0.head }
            }
            #expect(try await texts(channels()) == ["lock", "2"])
            try await device.disconnect()
        }

        @Test(
            "H4, H7, D10: data of a suspended Sync ID is NOT_ONLINE, is explained, and waits under the threshold")
        func suspended() async throws {
            let device = try await RawDevice.connect(stack, device: "sus-d", user: "sus-u") {
                $0.suspended = ["SINGLE-USER", "PRESENCE-PING"]
            }
            try await device.isCaughtUp()
            try await push("SINGLE-USER", to: "sus-u", (1...15).map(String.init), expecting: "NOT_ONLINE")
            try await push("PRESENCE-PING", to: "sus-u", ["dropped"], expecting: "NOT_ONLINE")
            try await push("UCHAT", to: "sus-u", ["taken"], expecting: "SUCCESS")
            try await device.waits(for: "the data of the Sync ID that is not suspended") { _ in
                device.payloads("UCHAT") == ["taken"]
            }
            try await explains(
                "SINGLE-USER", to: "sus-u", id: "sus-u-1", "sus-d\tconnected\tSUSPENDED", "takes it again")
            let dryRun = try await stack.tool([
                "push", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.instance, "--biz-type",
                "SINGLE-USER", "--to", "sus-u", "--id", "dry", "--dry-run", "x",
            ]).output
            #expect(dryRun.contains("NOT_ONLINE") && dryRun.contains(#""state":"SUSPENDED""#))
            #expect(device.payloads("SINGLE-USER").isEmpty)

            try await device.suspend()
            try await device.waits(for: "the newest of the backlog") { _ in
                device.payloads("SINGLE-USER") == (6...15).map(String.init)
            }
            let batch = try requireValue(device.batches.first { $0.bizType == "SINGLE-USER" }, "no batch")
            let older = try await device.history("SINGLE-USER") { $0.before = batch.passedOverUpto + 1 }
            #expect(older.entries.map { String(decoding: $0.payload, as: UTF8.self) } == ["5", "4", "3", "2", "1"])
            // The store knows the suspension, so the answer changes.
            for (suspended, message) in [([], "SUCCESS"), (["SINGLE-USER"], "NOT_ONLINE"), ([], "SUCCESS")] {
                try await device.send(.with { $0.subscriptions.suspended = suspended })
                try await eventually("the answer is \(message)", within: .seconds(10)) {
                    let id = UUID().uuidString
                    return await caller.call("SINGLE-USER", to: "sus-u", id: id, payload: id)?.msg == message
                }
            }
            #expect(device.payloads("PRESENCE-PING").isEmpty)
            try await device.disconnect()
        }

        @Test("a new store on an old device learns that there is older data, and history returns it")
        func newStore() async throws {
            try await push("SINGLE-USER", to: "ns-u", ["1", "2"], expecting: "NOT_ONLINE")
            let old = try await RawDevice.connect(stack, device: "ns-d", user: "ns-u")
            try await old.isCaughtUp()
            #expect(old.batches.map(\.passedOverUpto) == [0])
            try await old.acknowledge(old.batches[0])
            try await eventually("it is recorded", within: .seconds(10)) {
                try await explain("SINGLE-USER", to: "ns-u", id: "ns-u-2").contains("STORED")
            }
            try await old.disconnect()
            let new = try await RawDevice.connect(stack, gateway: 1, device: "ns-d", user: "ns-u") {
                $0.storeID = "another"
            }
            try await new.isCaughtUp()
            try await push("SINGLE-USER", to: "ns-u", ["3"], expecting: "SUCCESS")
            try await new.waits(for: "the third") { _ in new.payloads("SINGLE-USER") == ["3"] }
            #expect(new.batches.map(\.passedOverUpto) == [old.batches[0].upto])
            let older = try await new.history("SINGLE-USER") {
                $0.before = new.batches[0].passedOverUpto + 1
                $0.oldestFirst = true
            }
            #expect(older.entries == old.batches[0].entries)
            try await new.disconnect()
        }

        @Test(
            "a device with an interval of one second counts as dead 2.5 s after its last frame")
        func interval() async throws {
            let device = try await RawDevice.connect(stack, device: "int-d", user: "int-u")
            try await device.isCaughtUp()
            let connected = device.received.compactMap { packet -> Mss_Device_V1_Connected? in
                if case .connected(let connected)? = packet.body { connected } else { nil }
            }
            #expect(connected.map(\.heartbeatSeconds) == [60] && connected.map(\.maxHeartbeatSeconds) == [300])
            try await device.send(
                .with {
                    $0.ping.number = 1
                    $0.ping.intervalSeconds = 1
                })
            try await device.waits(for: "the end") { $0.contains { $0.close.code == CloseCode.idle.rawValue } }
            #expect(device.received.contains { $0.pong.number == 1 })
        }
    }
}
