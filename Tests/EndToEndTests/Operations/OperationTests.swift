import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

extension SecondRunningSystem {
    @Suite("Resends, dead letters, recall, trace, dry run")
    struct OperationTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        @Test("D14, D3: an unconfirmed oplog is given seven times, then it is a dead letter; a replay delivers it")
        func deadLetter() async throws {
            let deaf = TestDevice(
                stack, user: "d14-u", device: "d14-d", firstResend: .milliseconds(30), confirms: false)
            try await push("UCHAT", to: "d14-u", ["unheard", "unheard too"], expecting: "NOT_ONLINE")
            try await deaf.connected {
                try await eventually("both are given seven times", within: .seconds(30)) {
                    ["unheard", "unheard too"].allSatisfy { text in
                        deaf.received.filter { $0.text == text }.map(\.attempt) == Array(1...7)
                    }
                }
                try await explains("UCHAT", to: "d14-u", id: "d14-u-unheard", "DEAD", "7 times")
            }
            let list = ["dead-letters", "list", "--instance", Stack.instance, "--biz-type", "UCHAT"]
            let letters = try await stack.tool(list).output
            #expect(letters.contains("d14-u-unheard\tto d14-u\ton d14-d\thanded out 7 times\tcan be replayed"))

            let device = TestDevice(stack, user: "d14-u", device: "d14-d")
            try await device.connected {
                let replay = [
                    "dead-letters", "replay", "--instance", Stack.instance, "--biz-type", "UCHAT", "--to", "d14-u",
                    "--id", "d14-u-unheard", "--device", "d14-d",
                ]
                #expect(try await stack.tool(replay).status == 0)
                try await shows(device, "UCHAT", ["unheard"])
                #expect(device.received.first?.isReplay == true && device.received.first?.attempt == 1)
                try await explains("UCHAT", to: "d14-u", id: "d14-u-unheard", "DELIVERED")
                #expect(try await stack.tool(replay).status != 0, "it is no dead letter any more")
            }
            let left = try await stack.tool(list).output
            #expect(!left.contains("d14-u-unheard\t") && left.contains("d14-u-unheard too\t"))
            try await device.connected { try await mark(device) }
            #expect(device.payloads("UCHAT").filter { $0 == "unheard" }.count == 1)
        }

        @Test(
            "D14, D13: the gateway runs a simple device's resend ladder; the count survives connection and gateway")
        func simpleDevice() async throws {
            try await push("UCHAT", to: "simple-u", ["1", "2"], expecting: "NOT_ONLINE")
            func attempts(_ device: RawDevice) -> [UInt32] { device.batches.compactMap(\.entries.first).map(\.attempt) }
            let first = try await RawDevice.connect(stack, device: "simple-d", user: "simple-u") { $0.simple = true }
            try await first.waits(for: "the second attempt") { _ in attempts(first) == [0, 2] }
            try await first.disconnect()
            try stack.process("gateway-0").kill()
            let second = try await RawDevice.connect(stack, gateway: 1, device: "simple-d", user: "simple-u") {
                $0.simple = true
            }
            try await second.waits(for: "the count continues") { _ in attempts(second) == [2, 3] }
            try await second.acknowledge(second.batches[0])
            try await explains("UCHAT", to: "simple-u", id: "simple-u-1", "DELIVERED")
            try await second.disconnect()
            try await eventually("the gateway is back", within: .seconds(20)) { await stack.isReady() }
        }

        @Test("D5: the backlog of several Sync IDs arrives in one frame")
        func mergedPush() async throws {
            for bizType in ["UCHAT", "SINGLE-USER", "TRADE-SECURE"] {
                try await push(bizType, to: "d5-u", [bizType], expecting: "NOT_ONLINE")
            }
            try await push("DEVICE-LOCK", to: "d5-d", ["DEVICE-LOCK"], expecting: "NOT_ONLINE")
            // This session never has a valid verdict, so checked data cannot arrive in a later frame.
            let device = try await RawDevice.connect(stack, device: "d5-d", user: "d5-u") {
                $0.bind.sessionID = "bad-session"
            }
            try await device.isCaughtUp()
            #expect(device.batches.count == 3, "the session check keeps the fourth back")
            let pushes = device.received.filter { !$0.push.batches.isEmpty }
            #expect(pushes.count == 1)
            try await device.disconnect()
        }

        @Test(
            "H7: a recalled push does not reach a device without it, its key stays known; other devices get a tombstone"
        )
        func recall() async throws {
            let (early, late) = (
                TestDevice(stack, user: "h7-u", device: "h7-a"), TestDevice(stack, user: "h7-u", device: "h7-b")
            )
            try await early.connected {
                try await push("UCHAT", to: "h7-u", ["wrong", "right"], expecting: "SUCCESS")
                try await shows(early, "UCHAT", ["wrong", "right"])
                #expect(try await recall("wrong").msg == "SUCCESS")
                try await eventually("the tombstone", within: .seconds(10)) { early.received.count == 3 }
                let original = early.received[0].oplogID
                #expect(early.received[2].recalls == original && early.received[2].payload.isEmpty)
                #expect(try await recall("wrong", api: 1).oplogId == original, "repeated, it answers the same")
            }
            try await late.connected { try await shows(late, "UCHAT", ["right"]) }
            #expect(late.received.count == 1)
            try await push("UCHAT", to: "h7-u", ["wrong"], expecting: "DUPLICATED_BIZ_ID")
            try await explains("UCHAT", to: "h7-u", id: "h7-u-wrong", device: "h7-b", "RECALLED")
            try await explains("UCHAT", to: "h7-u", id: "h7-u-wrong", device: "h7-a", "DELIVERED")
            #expect(try await recall("never pushed").msg == "ARGS_IS_NULL")
        }

        /// Recalls, again while the answer is that the outcome is uncertain: for 6 s after a test has killed a gateway,
        /// its former process may still hold a lease.
        private func recall(_ payload: String, user: String = "h7-u", api: Int = 0) async throws -> Caller.Answer {
            var answer: Caller.Answer?
            try await eventually("the recall is certain", within: .seconds(10)) {
                let outcome = try await stack.tool([
                    "recall", "--api", "http://127.0.0.1:\(stack.apis[api])", "--instance", Stack.instance,
                    "--biz-type", "UCHAT", "--to", user, "--id", "\(user)-\(payload)",
                ])
                answer = try? JSONDecoder().decode(Caller.Answer.self, from: Data(outcome.output.utf8))
                return answer != nil
            }
            return try requireValue(answer, "the recall has no answer")
        }

        @Test("H7: a push that is recalled in transit is never shown, or is shown and then recalled by a tombstone")
        func recallInFlight() async throws {
            let device = TestDevice(stack, user: "race7-u", device: "race7-d")
            try await device.connected(gateway: 1) {
                for number in 0..<20 {
                    let pushed = await caller.call(
                        "UCHAT", to: "race7-u", id: "race7-u-\(number)", payload: "\(number)", api: number)
                    #expect(pushed?.msg == "SUCCESS")
                    #expect(try await recall("\(number)", user: "race7-u", api: number % 2).msg == "SUCCESS")
                }
                try await mark(device)
            }
            let received = device.received
            for (index, oplog) in received.enumerated() where (oplog.text?.count ?? 0) < 3 && oplog.recalls == nil {
                #expect(received[index...].contains { $0.recalls == oplog.oplogID }, "\(oplog.text ?? "")")
            }
            let later = TestDevice(stack, user: "race7-u", device: "race7-late")
            try await later.connected { try await mark(later) }
            #expect(later.received.allSatisfy { $0.recalls == nil && ($0.text?.count ?? 0) > 3 }, "markers alone")
        }

        @Test("H7: the trace names the true reason as text")
        func trace() async throws {
            let phone = TestDevice(stack, user: "why-u", device: "why-d", session: "bad-session")
            let past = ["validTimeEnd": "1000000000000"]
            try await push("UCHAT", to: "why-u", ["waiting"], expecting: "NOT_ONLINE")
            try await explains("UCHAT", to: "why-u", id: "why-u-waiting", "NOT_CONNECTED", "has ever connected")
            try await push("SINGLE-USER", to: "why-u", (1...15).map(String.init), expecting: "NOT_ONLINE")
            try await phone.connected {
                try await push("UCHAT", to: "why-u", ["os"], more: ["osType": "Android"], expecting: "NOT_ONLINE")
                try await push("UCHAT", to: "why-u", ["version"], more: ["appMinVersion": "9"], expecting: "NOT_ONLINE")
                try await push("UCHAT", to: "why-u", ["past"], more: past, expecting: "NOT_ONLINE")
                try await push("TRADE-SECURE", to: "why-u", ["secret"], expecting: "NOT_ONLINE")
                try await push("UCHAT", to: "why-u", ["here"], expecting: "SUCCESS")
                try await shows(phone, "UCHAT", ["waiting", "here"])
                for (id, state) in [
                    ("os", "FILTERED_BY_OS"), ("version", "FILTERED_BY_VERSION"), ("past", "EXPIRED"),
                    ("here", "DELIVERED"), ("waiting", "DELIVERED"),
                ] {
                    try await explains("UCHAT", to: "why-u", id: "why-u-\(id)", "why-d\tconnected\t\(state)")
                }
                try await explains("SINGLE-USER", to: "why-u", id: "why-u-5", "OVER_THRESHOLD")
                try await explains("SINGLE-USER", to: "why-u", id: "why-u-6", "DELIVERED")
                try await explains("TRADE-SECURE", to: "why-u", id: "why-u-secret", "SESSION_NOT_VALID", "The tenant")
            }
            try await eventually("it is gone", within: .seconds(10)) {
                try await explain("TRADE-SECURE", to: "why-u", id: "why-u-secret").contains("why-d\tnot connected")
            }
            try await push("UCHAT", to: "why-u", ["later"], expecting: "NOT_ONLINE")
            try await explains("UCHAT", to: "why-u", id: "why-u-later", "why-d\tnot connected\tNOT_CONNECTED")
            try await push("PRESENCE-PING", to: "why-u", ["dropped"], expecting: "NOT_ONLINE")
            try await explains("PRESENCE-PING", to: "why-u", id: "why-u-dropped", "NOT_PERSISTED")
        }

        @Test("H7: the trace names unconfirmed hand-outs, offline configurations, and another owner")
        func traceOfWaiting() async throws {
            let raw = try await RawDevice.connect(stack, device: "wait-d", user: "wait-u")
            try await raw.isCaughtUp()
            try await push("UCHAT", to: "wait-u", ["sent"], expecting: "SUCCESS")
            try await explains("UCHAT", to: "wait-u", id: "wait-u-sent", "HANDED_OUT", "handed out at 20")
            try await raw.acknowledge(raw.batches[0])
            try await explains("UCHAT", to: "wait-u", id: "wait-u-sent", "STORED", "not confirmed it yet")
            try await raw.disconnect()

            try await configure("create", "WHY-OFFLINE")
            try await push("WHY-OFFLINE", to: "wait-u", ["held"], expecting: "NOT_ONLINE")
            try await configure("offline", "WHY-OFFLINE")
            try await explains("WHY-OFFLINE", to: "wait-u", id: "wait-u-held", "CONFIGURATION_OFFLINE", "comes online")
            try await configure("delete", "WHY-OFFLINE")
            try await explains("WHY-OFFLINE", to: "wait-u", id: "wait-u-held", "CONFIGURATION_OFFLINE", "deleted")

            let old = TestDevice(stack, user: "own-u", device: "own-a")
            let new = TestDevice(stack, user: "own-u", device: "own-b")
            try await old.connected {
                try await new.connected(gateway: 1) {
                    try await push("SINGLE-USER", to: "own-u", ["one"], expecting: "SUCCESS")
                    try await explains(
                        "SINGLE-USER", to: "own-u", id: "own-u-one", "own-a\tconnected\tNOT_OWNER",
                        "own-b\tconnected\tDELIVERED")
                }
            }
        }

        @Test("H7: a dry run lists the receivers and the reasons of the others, and stores nothing")
        func dryRun() async throws {
            func run(_ bizType: String, _ more: [String] = []) async throws -> String {
                try await stack.tool(
                    [
                        "push", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.instance,
                        "--biz-type", bizType, "--to", "dry-u", "--id", "dry-1", "--dry-run", "x",
                    ] + more
                ).output
            }
            #expect(try await run("UCHAT").contains("NOT_ONLINE"))
            let phone = TestDevice(stack, user: "dry-u", device: "dry-d", session: "bad-session")
            try await phone.connected {
                #expect(try await run("UCHAT").contains(#""deviceId":"dry-d","state":"ON_ITS_WAY""#))
                #expect(try await run("UCHAT", ["--os", "Android"]).contains("FILTERED_BY_OS"))
                #expect(try await run("UCHAT", ["--min-version", "2"]).contains("FILTERED_BY_VERSION"))
                #expect(try await run("UCHAT", ["--valid-until", "1000000000000"]).contains("EXPIRED"))
                #expect(try await run("TRADE-SECURE").contains("SESSION_NOT_VALID"))
                #expect(try await run("OFFLINE-DEMO").contains("BIZ_NOT_ONLINE"))
                let global = try await stack.tool([
                    "push-global", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.instance,
                    "--biz-type", "GLOBAL-SDK-CONFIG", "--dry-run", "x",
                ]).output
                #expect(global.contains("WAITS_FOR_FOREGROUND"))
                try await push("UCHAT", to: "dry-u", ["real"], expecting: "SUCCESS")
                try await shows(phone, "UCHAT", ["real"])
            }
            let answer = await caller.call("UCHAT", to: "dry-u", id: "dry-1", payload: "now")
            #expect(answer?.msg != "DUPLICATED_BIZ_ID", "no dry run has used the key")
            #expect(try await run("UCHAT").contains("DUPLICATED_BIZ_ID"))
        }

        @Test("C11: the tool lists the connected devices")
        func devices() async throws {
            let phone = TestDevice(stack, user: "list-u", device: "list-d")
            try await phone.connected(gateway: 1) {
                let expected =
                    "list-d\tuser list-u, owner, session valid, foreground\tiOS 1.0.0\tat gateway-1\tsince 20"
                try await eventually("the device is listed with its verdict", within: .seconds(10)) {
                    let arguments = ["devices", "--instance", Stack.instance, "--user", "list-u"]
                    return try await stack.tool(arguments).output.hasPrefix(expected)
                }
            }
        }
    }
}
