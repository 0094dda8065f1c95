import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import SyncModel
import TestSupport
import Testing

extension SecondRunningSystem {
    /// Signatures by the app's key, and device ids that belong to secrets.
    @Suite("The identity of devices")
    struct DeviceIdentityTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        private func make(_ id: String, _ settings: String = "") async throws -> SignedInstance {
            try await SignedInstance.make(stack, id, settings)
        }

        @Test("SEC9: with the switch on only signed connects are accepted, from the next connect on")
        func switchOn() async throws {
            let app = try await make("sec9_switch")
            let key = try await app.makeKey()
            let open = try await app.open(app.connect(device: "d", user: "u"))
            try await open.isCaughtUp()
            try await app.set("--require-signature")
            try await open.send(.with { $0.ping.number = 7 })
            try await open.waits(for: "the open connection's pong") { $0.contains { $0.pong.number == 7 } }
            #expect(try await app.code(app.connect(device: "d2", user: "u")) == 5_003)
            #expect(try await app.code(app.connect(device: "d2", user: "u", key: key)) == nil)
            try await open.disconnect()
            #expect(try await app.code(app.connect(device: "d", user: "u")) == 5_003)
            try await app.set("--no-require-signature")
            #expect(try await app.code(app.connect(device: "d", user: "u")) == nil)
        }

        @Test("SEC9: a replayed Connect is refused, at the same gateway and at the other")
        func replay() async throws {
            let app = try await make("sec9_replay")
            let key = try await app.makeKey()
            try await app.set("--require-signature")
            let packet = app.connect(device: "d", user: "u", key: key)
            let first = try await app.open(packet)
            try await first.isCaughtUp()
            for gateway in 0..<2 { #expect(try await app.code(packet, gateway: gateway) == 5_003) }
            try await first.send(.with { $0.ping.number = 7 })
            try await first.waits(for: "the pong of the device that was copied") { $0.contains { $0.pong.number == 7 } }
            // The same Connect at both gateways at once: exactly one is accepted.
            let raced = app.connect(device: "d3", user: "u", key: key)
            async let left = app.code(raced, gateway: 0)
            async let right = app.code(raced, gateway: 1)
            let codes = try await [left, right]
            #expect(Set(codes) == [nil, 5_003])
        }

        @Test("SEC2: more devices with signed connects than the limit for strangers are served, and all of them stay")
        func manySigned() async throws {
            let app = try await make("sec2_signed")
            let key = try await app.makeKey()
            try await app.set("--require-signature")
            var devices: [RawDevice] = []
            for number in 0..<StackSettings.unconnectedMax + 10 {
                devices.append(try await app.open(app.connect(device: "d\(number)", user: "u\(number)", key: key)))
                // The first devices wait silently for the last, on a slow machine longer than the usual interval.
                try await devices[number].send(.with { $0.ping.intervalSeconds = 300 })
                guard number % 10 == 9 else { continue }
                for device in devices.suffix(10) {
                    try await device.waits(for: "the greeting of \(number)") {
                        $0.contains { if case .connected? = $0.body { true } else { false } }
                    }
                }
            }
            let ended = devices.count { !$0.isConnected }
            #expect(ended == 0)
            for device in devices { try? await device.disconnect() }
        }

        @Test("SEC9: a change of any signed byte, or of the key's owner, is refused") func forged() async throws {
            let (app, other) = (try await make("sec9_forged"), try await make("sec9_other"))
            let (key, foreign) = (try await app.makeKey(), try await other.makeKey())
            try await app.set("--require-signature")
            func forged(_ change: (inout Mss_Device_V1_Connect) -> Void) -> Mss_Device_V1_Packet {
                var packet = app.connect(device: "d", user: "u", key: key)
                change(&packet.connect)
                return packet
            }
            let changes: [(inout Mss_Device_V1_Connect) -> Void] = [
                { $0.deviceID = "e" }, { $0.storeID = "e" }, { $0.bind.userID = "v" }, { $0.bind.sessionID = "v" },
                { $0.background = true }, { $0.suspended = ["UCHAT"] }, { $0.simple = true },
                { $0.signature.nonce[0] ^= 1 }, { $0.signature.timestampMs += 1 }, { $0.signature.mac[31] ^= 1 },
                { $0.signature.mac = Data() }, { $0.signature.keyID = foreign.id }, { $0.clearSignature() },
                { $0.deviceSecret = Data(repeating: 1, count: 32) }, { $0.appVersion = "9" }, { $0.osName = "" },
            ]
            for change in changes { #expect(try await app.code(forged(change)) == 5_003) }
            #expect(try await app.code(app.connect(device: "d", user: "u", key: foreign)) == 5_003)
            #expect(try await app.code(forged { _ in }) == nil)
        }

        @Test("SEC6: a device with a wrong clock gets the right time; keys rotate, and a revoked key is refused")
        func clocksAndKeys() async throws {
            let app = try await make("sec9_keys")
            let old = try await app.makeKey()
            try await app.set("--require-signature")
            let now = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
            for seconds in [-320, 320] {
                let late = app.connect(device: "d", user: "u", key: old, at: now + .seconds(seconds))
                let close = try #require(try await app.answer(to: late))
                #expect(close.code == 1_002 && abs(close.serverTimeMs - now.milliseconds) < 60_000)
            }
            for seconds in [-250, 250] {
                let fine = app.connect(device: "d", user: "u", key: old, at: now + .seconds(seconds))
                #expect(try await app.code(fine) == nil)
            }
            let new = try await app.makeKey()
            for key in [old, new] { #expect(try await app.code(app.connect(device: "d", user: "u", key: key)) == nil) }
            try await app.tool("key", "revoke", old.id, "--instance", app.id)
            for gateway in 0..<2 {
                #expect(
                    try await app.code(app.connect(device: "d", user: "u", key: old), gateway: gateway) == 5_003)
            }
            #expect(try await app.code(app.connect(device: "d", user: "u", key: new)) == nil)
        }

        @Test("SEC6: a phone whose clock is a year off still gets its data, and later connects succeed at once")
        func phoneWithWrongClock() async throws {
            let app = try await make("sec9_phone")
            let key = try await app.makeKey()
            _ = try await Caller(apis: stack.apis, instance: app.id).push("UCHAT", to: "u", id: "1", payload: "hello")
            try await app.set("--require-signature")
            let device = TestDevice(stack, user: "u", device: "sec9-phone", instance: app.id) {
                $0.appKey = key
                $0.clock = {
                    WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000) - 365 * 86_400_000)
                }
            }
            func refusals() -> Int { device.events.count { if case .closed(1_002, _) = $0 { true } else { false } } }
            try await device.connected {
                try await eventually("the data", within: .seconds(15)) { device.payloads("UCHAT") == ["hello"] }
            }
            #expect(refusals() == 1)
            try await device.connected()
            #expect(refusals() == 1)
        }

        @Test(
            "SEC9: a wrong or missing secret is refused and disturbs no other device; a released id can be used again")
        func secrets() async throws {
            let app = try await make("sec9_bound", #", "bindDevices": true"#)
            let caller = Caller(apis: stack.apis, instance: app.id)
            let owner = try await app.open(app.connect(device: "d", user: "u", secret: 1))
            try await owner.isCaughtUp()
            for gateway in 0..<2 {
                #expect(try await app.code(app.connect(device: "d", user: "u", secret: 2), gateway: gateway) == 5_004)
                #expect(try await app.code(app.connect(device: "d", user: "u"), gateway: gateway) == 5_004)
            }
            #expect(await caller.call("UCHAT", to: "u", id: "1", payload: "1")?.msg == "SUCCESS")
            try await owner.waits(for: "the owner's data") { _ in owner.payloads("UCHAT") == ["1"] }
            #expect(try await app.code(app.connect(device: "d4", user: "u")) == 5_004, "an id needs a secret")
            // A further bind of the rightful device has the same secret.
            try await owner.send(
                .with {
                    $0.bind.bindNumber = 2
                    $0.bind.userID = "u2"
                })
            try await owner.waits(for: "its bind") { $0.contains { $0.bindResult.bindNumber == 2 } }
            try await owner.disconnect()
            #expect(try await app.code(app.connect(device: "d", user: "u", secret: 2)) == 5_004)
            try await app.tool("devices", "release", "--instance", app.id, "--device", "d")
            #expect(try await app.code(app.connect(device: "d", user: "u", secret: 2)) == nil)
            #expect(try await app.code(app.connect(device: "d", user: "u", secret: 1)) == 5_004)
            let again = try await stack.tool(["devices", "release", "--instance", app.id, "--device", "none"])
            #expect(again.status != 0 && again.output.contains("no secret is on record"))
            try await app.set("--no-bind-devices")
            #expect(try await app.code(app.connect(device: "d", user: "u")) == nil)
        }

        @Test("SEC9: a client with an id of another device draws a new one by itself and gets its user's data")
        func registersAnew() async throws {
            let app = try await make("sec9_anew", #", "bindDevices": true"#)
            let caller = Caller(apis: stack.apis, instance: app.id)
            let thief = try await app.open(app.connect(device: "sec9-anew", user: "other", secret: 1))
            try await thief.isCaughtUp()
            _ = try await caller.push("UCHAT", to: "u", id: "1", payload: "hello")
            let device = TestDevice(stack, user: "u", device: "sec9-anew", instance: app.id)
            func names() -> [String] {
                device.events.compactMap { if case .registeredAnew(let name) = $0 { name } else { nil } }
            }
            try await device.connected {
                try await eventually("the data", within: .seconds(15)) { device.payloads("UCHAT") == ["hello"] }
                let name = try #require(names().first)
                _ = try await caller.push("DEVICE", to: name, id: "2", payload: "for the new id")
                try await eventually("the device's data", within: .seconds(15)) {
                    device.payloads("DEVICE") == ["for the new id"]
                }
                #expect(await caller.call("UCHAT", to: "other", id: "3", payload: "3")?.msg == "SUCCESS")
            }
            try await device.connected()
            #expect(names().count == 1, "it keeps the id that it took")
            try await thief.disconnect()
        }

        @Test("V1: longer session ids where the instance allows them; a frame beyond the limit ends the connection")
        func longSessions() async throws {
            let app = try await make("v1_long", #", "sessionLength": 4096"#)
            func connect(_ units: Int) -> Mss_Device_V1_Packet {
                var packet = app.connect(device: "d", user: "u")
                packet.connect.bind.sessionID = String(repeating: "中", count: units)
                return packet
            }
            for (units, isTaken) in [(101, true), (4_096, true), (4_097, false)] {
                let device = try await app.open(connect(units))
                try await device.waits(for: "an answer to \(units)") { packets in
                    packets.contains { $0.bindResult.bindNumber == 1 && $0.bindResult.accepted == isTaken }
                }
                if isTaken { try await device.disconnect() } else { try await device.isClosed() }
            }
            #expect(try await app.code(connect(30_000)) == 5_000)
            try await app.set("--session-length", "100")
            let refused = try await app.open(connect(101))
            try await refused.isClosed()
            let reason = try #require(refused.received.first?.bindResult.reason)
            #expect(reason.contains("at most 100"))
        }
    }
}
