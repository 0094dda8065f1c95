import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

extension SteadySystem {
    /// A user's single-device data, and devices that may not receive it.
    @Suite("Ownership, and attacks by devices without a valid session")
    struct OwnershipTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        private static let instance = "ownership_app"
        private static let bizType = "SOLO"

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis, instance: Self.instance)
        }

        /// Creates an instance whose single-device configuration has the session check.
        private func makeInstance() async throws {
            let file = stack.folder.appending(path: "ownership-\(UUID().uuidString).json")
            try """
            {"instances": [{"instanceId": "\(Self.instance)", "validatorUrl": "\(stack.validatorURL)"}],
             "configurations": [{"instanceId": "\(Self.instance)", "bizType": "\(Self.bizType)", "description": "",
               "scope": "appointed", "target": "user", "multiDevice": false, "repush": "all", "checkSession": true}]}
            """.write(to: file, atomically: true, encoding: .utf8)
            let outcome = try await stack.tool(["apply", file.path])
            guard outcome.status == 0 else { throw Failure(outcome.output) }
        }

        private func device(_ name: String, user: String, session: String) -> TestDevice {
            TestDevice(stack, user: user, device: name, session: session, instance: Self.instance)
        }

        private func push(_ payload: String, to user: String) async throws {
            _ = try await caller.push(Self.bizType, to: user, id: payload, payload: payload)
        }

        private func shows(_ device: TestDevice, _ payloads: [String]) async throws {
            try await eventually("\(device.device) shows \(payloads)", within: .seconds(15)) {
                device.payloads(Self.bizType) == payloads
            }
        }

        @Test(
            "D8, D16: a stranger that binds the user with a made-up session and reports all positions takes nothing away"
        )
        func stranger() async throws {
            try await makeInstance()
            let victim = device("own-victim", user: "own-v", session: "own-session")
            try await victim.connected {
                try await push("1", to: "own-v")
                try await shows(victim, ["1"])
            }
            for payload in ["2", "3"] { try await push(payload, to: "own-v") }
            let claimed: Int64 = (1 << 53) - 1
            let stranger = try await RawDevice.connect(stack, gateway: 1, device: "own-stranger", user: "own-v") {
                $0.instanceID = Self.instance
                $0.bind.sessionID = "bad-made-up"
                $0.bind.syncPoints = [
                    .with {
                        $0.bizType = Self.bizType
                        $0.oplogID = claimed
                    }
                ]
            }
            try await stranger.isCaughtUp()
            try await stranger.send(
                .with {
                    $0.storedAck.channels = [
                        .with {
                            $0.bizType = Self.bizType
                            $0.bindNumber = 1
                            $0.upto = claimed
                        }
                    ]
                })
            try await stranger.waits(for: "the tenant's verdict") {
                $0.contains { $0.sessionState.validity == .invalid }
            }
            try await stranger.disconnect()
            #expect(stranger.batches.isEmpty)
            try await victim.connected { try await shows(victim, ["1", "2", "3"]) }
        }

        @Test("D8, D16: a phone with a signed-out user connects again; the signed-in phone continues to receive")
        func formerPhone() async throws {
            try await makeInstance()
            let former = device("own-former", user: "own-u", session: "own-former-session")
            let present = device("own-present", user: "own-u", session: "own-present-session")
            try await former.connected {
                try await push("1", to: "own-u")
                try await shows(former, ["1"])
            }
            try await stack.setTruth(of: "own-former-session", false)
            try await present.connected(gateway: 1) {
                try await push("2", to: "own-u")
                try await shows(present, ["2"])
                try await former.connected {
                    try await eventually("the former phone is notified", within: .seconds(10)) {
                        former.events.contains { if case .sessionInvalid = $0 { true } else { false } }
                    }
                    try await push("3", to: "own-u")
                    try await shows(present, ["2", "3"])
                }
            }
            #expect(former.payloads(Self.bizType) == ["1"])
        }

        @Test("D8: a reconnect's bind does not change the owner; a bind that the app requests does")
        func reconnect() async throws {
            let caller = Caller(apis: stack.apis)
            let owner = try await RawDevice.connect(stack, device: "own-r-a", user: "own-r")
            try await owner.waits(for: "ownership") { $0.contains { $0.ownershipTaken.bindNumber == 1 } }
            let other = try await RawDevice.connect(stack, gateway: 1, device: "own-r-b", user: "own-r") {
                $0.bind.requestedByApp = false
            }
            try await other.isCaughtUp()
            _ = try await caller.push("SINGLE-USER", to: "own-r", id: "1", payload: "1")
            try await owner.waits(for: "the owner's data") { _ in owner.payloads("SINGLE-USER") == ["1"] }
            try await other.send(
                .with {
                    $0.bind.bindNumber = 2
                    $0.bind.userID = "own-r"
                    $0.bind.sessionID = "session"
                    $0.bind.requestedByApp = true
                })
            try await other.waits(for: "ownership") { $0.contains { $0.ownershipTaken.bindNumber == 2 } }
            _ = try await caller.push("SINGLE-USER", to: "own-r", id: "2", payload: "2")
            try await other.waits(for: "its data") { _ in other.payloads("SINGLE-USER").last == "2" }
            #expect(!owner.payloads("SINGLE-USER").contains("2"))
            try await owner.disconnect()
            try await other.disconnect()
        }
    }
}
