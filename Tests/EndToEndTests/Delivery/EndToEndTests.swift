import Foundation
import MobileSync
import SyncStore
import TestSupport
import Testing

extension RunningSystem {
    @Suite("One push, end to end")
    struct EndToEndTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        @Test(
            "D4, H4: the main path: stored offline, printed by mssctl listen, then connected; repeats are recognised")
        func mainJob() async throws {
            let caller = Caller(apis: stack.apis)
            let payload = #"{"name":"James"}"#
            let offline = try #require(await caller.call("UCHAT", to: "main-u1", id: "m1", payload: payload))
            #expect(offline.success)
            #expect(offline.msg == "NOT_ONLINE")

            let listener = try Listener(stack, user: "main-u1", device: "main-d1")
            defer { listener.stop() }
            try await eventually("the stored push is printed", within: .seconds(15)) {
                listener.lines("UCHAT").count == 1
            }
            let online = try #require(await caller.call("UCHAT", to: "main-u1", id: "m2", payload: payload, api: 1))
            #expect(online.msg == "SUCCESS")
            try await eventually("the live push is printed", within: .seconds(5)) {
                listener.lines("UCHAT").count == 2
            }
            let repeated = try #require(await caller.call("UCHAT", to: "main-u1", id: "m2", payload: "other"))
            #expect(repeated.success)
            #expect(repeated.msg == "DUPLICATED_BIZ_ID")
            #expect(repeated.oplogId == online.oplogId)

            let printed = try listener.lines("UCHAT").map {
                try JSONDecoder().decode(Listener.Line.self, from: Data($0.utf8))
            }
            #expect(printed.map(\.payload) == [payload, payload])
            #expect(printed.map(\.thirdMsgId) == ["m1", "m2"])
            #expect(printed.map(\.bizType) == ["UCHAT", "UCHAT"])
            #expect(printed.map(\.oplogId) == [offline.oplogId, online.oplogId])
        }

        @Test(
            "H3: the last checks of the order, on the running system",
            arguments: [
                ("NO-SUCH", "BIZ_NOT_ONLINE"), ("OFFLINE-DEMO", "BIZ_NOT_ONLINE"),
                ("GLOBAL-SDK-CONFIG", "NOT_SUPPORT_GLOBAL"),
            ])
        func refusals(bizType: String, code: String) async throws {
            let answer = try #require(await Caller(apis: stack.apis).call(bizType, to: "u", id: "r1", payload: "x"))
            #expect(!answer.success)
            #expect(answer.msg == code && !answer.retryable)
        }

        @Test("H2: Base64 with line breaks, as MIME encoders write it, is delivered as its bytes")
        func lineBreaks() async throws {
            let device = TestDevice(stack, user: "mime-u", device: "mime-d")
            let more = ["binaryPayload": "aGVs\r\nbG8=\r\n"]
            let answer = await Caller(apis: stack.apis).call("UCHAT", to: "mime-u", id: "1", payload: "", more: more)
            #expect(answer?.msg == "NOT_ONLINE")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await device.stay() }
                try await eventually("it arrives", within: .seconds(10)) { !device.received.isEmpty }
                group.cancelAll()
            }
            #expect(device.received.map(\.payload) == [Array("hello".utf8)])
        }

        @Test("D18: racing repeats of one call store exactly one oplog")
        func racingRepeats() async throws {
            let apis = stack.apis
            let answers = await withTaskGroup(of: Caller.Answer?.self) { group in
                for number in 0..<32 {
                    group.addTask {
                        await Caller(apis: apis).call("UCHAT", to: "race-u", id: "same", payload: "x", api: number)
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }.compactMap(\.self)
            #expect(answers.count == 32)
            #expect(Set(answers.compactMap(\.oplogId)).count == 1)
            #expect(answers.filter { $0.msg == "NOT_ONLINE" }.count == 1)
            #expect(answers.filter { $0.msg == "DUPLICATED_BIZ_ID" }.count == 31)
        }

        @Test("device data and global data reach a device without a bound user")
        func deviceData() async throws {
            let device = TestDevice(stack, user: "dev-u", device: "dev-d")
            let caller = Caller(apis: stack.apis)
            #expect(await caller.call("DEVICE-LOCK", to: "dev-d", id: "l1", payload: "lock")?.msg == "NOT_ONLINE")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await device.stay() }
                try await eventually("the stored lock arrives", within: .seconds(10)) { !device.received.isEmpty }
                #expect(await caller.call("DEVICE-LOCK", to: "dev-d", id: "l2", payload: "unlock")?.msg == "SUCCESS")
                try await eventually("the live one arrives", within: .seconds(10)) { device.received.count == 2 }
                group.cancelAll()
            }
            #expect(device.received.compactMap(\.text) == ["lock", "unlock"])
        }

        @Test("D16: a session with an invalid verdict gets nothing of TRADE-SECURE and everything of UCHAT")
        func invalidSession() async throws {
            let caller = Caller(apis: stack.apis)
            let bad = TestDevice(stack, user: "trade-u", device: "trade-bad", session: "bad-session")
            let good = TestDevice(stack, user: "trade-u", device: "trade-good", session: "good-session")
            _ = await caller.call("TRADE-SECURE", to: "trade-u", id: "t0", payload: "secret 0")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await bad.stay(gateway: 0) }
                group.addTask { try await good.stay(gateway: 1) }
                try await eventually("the bad session is notified", within: .seconds(20)) {
                    bad.events.contains { if case .sessionInvalid = $0 { true } else { false } }
                }
                for number in 1...20 {
                    _ = try await caller.push(
                        "TRADE-SECURE", to: "trade-u", id: "t\(number)", payload: "secret \(number)")
                    _ = try await caller.push("UCHAT", to: "trade-u", id: "c\(number)", payload: "chat \(number)")
                }
                try await eventually("the valid session has everything", within: .seconds(20)) {
                    good.received.count == 41
                }
                try await eventually("the bad one has the chat", within: .seconds(20)) { bad.received.count >= 20 }
                let last = await caller.call("TRADE-SECURE", to: "trade-u", id: "last", payload: "secret last")
                #expect(last?.msg == "SUCCESS", "the store knows that a session is valid")
                group.cancelAll()
            }
            #expect(bad.received.allSatisfy { $0.bizType == "UCHAT" })
            #expect(bad.received.count == 20)
        }

        @Test(
            "D2, D13: pushes to many users on changing connections: each gets its user's pushes, once, in order")
        func manyPushes() async throws {
            let campaign = Campaign(stack, name: "many")
            try await campaign.run()
            #expect(campaign.count >= Campaign.pushes)
            #expect(campaign.faults() == [])
        }
    }
}
