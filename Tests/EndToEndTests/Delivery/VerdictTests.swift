import DeviceProtocol
import Foundation
import SwiftProtobuf
import TestSupport
import Testing

extension SecondRunningSystem {
    @Suite("Verdicts and their end, over two gateways")
    struct VerdictTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        private func connect(_ name: String, session: String, gateway: Int) async throws -> RawDevice {
            let device = try await RawDevice.connect(
                stack, gateway: gateway, device: "\(name)-\(session)-\(gateway)", user: name
            ) { $0.bind.sessionID = session }
            try await device.isCaughtUp()
            return device
        }

        /// Pushes to a user and checks that none of these devices receives the push: a marker that is pushed later
        /// arrives.
        private func reachesNobody(_ bizType: String, to user: String, _ devices: RawDevice...) async throws {
            let id = UUID().uuidString
            _ = try await caller.push(bizType, to: user, id: id, payload: id)
            _ = try await caller.push("UCHAT", to: user, id: "m-\(id)", payload: "m-\(id)")
            for device in devices {
                try await device.waits(for: "the marker") { _ in device.payloads("UCHAT").contains("m-\(id)") }
                #expect(!device.payloads(bizType).contains(id), "\(bizType) to \(user)")
            }
        }

        private func isToldInvalid(_ device: RawDevice) async throws {
            try await device.waits(for: "the end of the session") { frames in
                frames.contains { $0.sessionState.validity == .invalid && !$0.sessionState.reason.isEmpty }
            }
        }

        private func shows(_ device: RawDevice, _ bizType: String, _ payload: String) async throws {
            try await device.waits(for: payload) { _ in device.payloads(bizType).contains(payload) }
        }

        @Test("V6: an invalid verdict at one gateway ends the session at the other gateway at once")
        func endsEverywhere() async throws {
            let holder = try await connect("v6-u", session: "v6-s", gateway: 1)
            _ = try await caller.push("TRADE-SECURE", to: "v6-u", id: "v6-1", payload: "1")
            try await shows(holder, "TRADE-SECURE", "1")
            try await stack.setTruth(of: "v6-s", false)
            // The verdict of the first connection lasts for minutes; another device of the session makes a new request.
            let asker = try await connect("v6-u", session: "v6-s", gateway: 0)
            try await isToldInvalid(asker)
            try await isToldInvalid(holder)
            try await reachesNobody("TRADE-SECURE", to: "v6-u", holder, asker)
        }

        @Test(
            "D16, V5, I7: with V = 0 no data is sent once the tenant says invalid, with V = 2 s none after 2 s")
        func lifetimes() async throws {
            try await configure("create", "V-ZERO", "--check-session", "--verdict-lifetime-seconds", "0")
            try await configure("create", "V-SHORT", "--check-session", "--verdict-lifetime-seconds", "2")
            let zero = [
                try await connect("v0-u", session: "v0-s", gateway: 0),
                try await connect("v0-u", session: "v0-s", gateway: 1),
            ]
            for number in 1...20 {
                _ = try await caller.push("V-ZERO", to: "v0-u", id: "v0-\(number)", payload: "\(number)")
            }
            for device in zero {
                try await device.waits(for: "all") { _ in device.payloads("V-ZERO") == (1...20).map { "\($0)" } }
            }
            try await stack.setTruth(of: "v0-s", false)
            try await reachesNobody("V-ZERO", to: "v0-u", zero[0], zero[1])
            for device in zero { try await isToldInvalid(device) }

            let short = try await connect("v2-u", session: "v2-s", gateway: 0)
            _ = try await caller.push("V-SHORT", to: "v2-u", id: "v2-first", payload: "first")
            try await shows(short, "V-SHORT", "first")
            try await stack.setTruth(of: "v2-s", false)
            let turned = ContinuousClock.now
            var late: Set<String> = []
            try await eventually("the verdict has run out", within: .seconds(10)) {
                let id = UUID().uuidString
                if turned.duration(to: .now) > .seconds(2) { late.insert(id) }
                _ = try await caller.push("V-SHORT", to: "v2-u", id: id, payload: id)
                return late.count >= 10
            }
            try await isToldInvalid(short)
            try await reachesNobody("V-SHORT", to: "v2-u", short)
            #expect(late.isDisjoint(with: short.payloads("V-SHORT")))
        }

        @Test(
            "H7, I7: after a revocation's success no data goes out on the session; a new connect asks the tenant again")
        func revoke() async throws {
            let ended = try await connect("rv-u", session: "rv-1", gateway: 0)
            let other = try await connect("rv-u", session: "rv-2", gateway: 1)
            _ = try await caller.push("TRADE-SECURE", to: "rv-u", id: "rv-1", payload: "before")
            for device in [ended, other] { try await shows(device, "TRADE-SECURE", "before") }
            // The tenant's endpoint still says valid; older connections ignore that.
            #expect(await caller.revoke("rv-u", session: "rv-1")?.success == true)
            try await reachesNobody("TRADE-SECURE", to: "rv-u", ended)
            try await isToldInvalid(ended)
            _ = try await caller.push("TRADE-SECURE", to: "rv-u", id: "rv-2", payload: "after")
            try await shows(other, "TRADE-SECURE", "after")
            let again = try await connect("rv-u", session: "rv-1", gateway: 1)
            try await shows(again, "TRADE-SECURE", "after")

            let file = stack.folder.appending(path: "session")
            try Data("rv-1\n".utf8).write(to: file)
            let arguments = ["revoke", "--api", "http://127.0.0.1:\(stack.apis[1])", "--instance", Stack.instance]
            let outcome = try await stack.tool(arguments + ["--user", "rv-u", "--session-file", file.path])
            #expect(outcome.status == 0, "\(outcome.output)")
            try await reachesNobody("TRADE-SECURE", to: "rv-u", again)
            #expect(await caller.revoke("rv-u")?.success == true)
            try await reachesNobody("TRADE-SECURE", to: "rv-u", ended, other, again)
            try await isToldInvalid(other)

            let nobody = await caller.revoke(nil)
            #expect(nobody?.msg == "ARGS_IS_NULL" && nobody?.detail?.contains("userId") == true)
        }

        @Test("H7, I7: a gateway that does not answer makes a revocation uncertain; after a pause it sends nothing")
        func pausedGateway() async throws {
            let device = try await connect("rp-u", session: "rp-s", gateway: 1)
            _ = try await caller.push("TRADE-SECURE", to: "rp-u", id: "rp-1", payload: "before")
            try await shows(device, "TRADE-SECURE", "before")
            let gateway = try stack.process("gateway-1")
            gateway.signal(SIGSTOP)
            defer { gateway.signal(SIGCONT) }
            #expect(await caller.revoke("rp-u")?.msg == "SYSTEM_ERROR")
            _ = await caller.call("TRADE-SECURE", to: "rp-u", id: "rp-2", payload: "while paused")
            try await eventually("its lease has ended", within: .seconds(15)) {
                await caller.revoke("rp-u")?.success == true
            }
            gateway.signal(SIGCONT)
            try await isToldInvalid(device)
            try await reachesNobody("TRADE-SECURE", to: "rp-u", device)
            #expect(device.payloads("TRADE-SECURE") == ["before"])
        }
    }
}
