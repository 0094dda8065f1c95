import Foundation
import MobileSync
import TestSupport
import Testing

extension SteadySystem {
    @Suite("A push scope that changes, and the position that counts")
    struct ScopeTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis, instance: Stack.globalInstance)
        }

        private func device(_ name: String, user: String = "u") -> TestDevice {
            TestDevice(stack, user: "\(name)-\(user)", device: name, instance: Stack.globalInstance)
        }

        /// Changes the scope and waits until both APIs use it.
        private func change(_ bizType: String, to scope: String, refusing target: String?) async throws {
            try await configure("set", bizType, "--scope", scope)
            try await eventually("the API uses the scope \(scope)", within: .seconds(10)) {
                let id = UUID().uuidString
                return await caller.call(bizType, to: target, id: id, payload: id)?.msg == "NOT_SUPPORT_GLOBAL"
            }
        }

        @Test(
            "C4: data stored under the former scope still arrives, new pushes arrive under the new scope, and back")
        func scope() async throws {
            let (own, other) = (device("scope-a"), device("scope-b"))
            try await configure("create", "SCOPE", "--description", "d", "--repush", "all")
            try await push("SCOPE", to: own.user, ["own"], expecting: "NOT_ONLINE")
            try await change("SCOPE", to: "global", refusing: own.user)
            try await push("SCOPE", to: nil, ["all"], expecting: "SUCCESS")
            try await own.connected {
                try await eventually("both arrive, not \(own.payloads("SCOPE"))", within: .seconds(10)) {
                    own.payloads("SCOPE").sorted() == ["all", "own"]
                }
                // Confirmations are reported only while the app is connected.
                try await explains("SCOPE", to: own.user, id: "\(own.user)-own", "DELIVERED")
                try await explains("SCOPE", to: nil, id: "all-all", device: own.device, "DELIVERED")
            }
            try await change("SCOPE", to: "appointed", refusing: nil)
            try await push("SCOPE", to: own.user, ["back"], expecting: "NOT_ONLINE")
            try await other.connected { try await shows(other, "SCOPE", ["all"]) }
            try await own.connected {
                try await eventually("only what is new arrives, not \(own.payloads("SCOPE"))", within: .seconds(10)) {
                    own.payloads("SCOPE").sorted() == ["all", "back", "own"]
                }
            }
            let recalled = try await stack.tool([
                "recall", "--api", "http://127.0.0.1:\(stack.apis[0])", "--instance", Stack.globalInstance,
                "--biz-type", "SCOPE", "--id", "all-all",
            ])
            #expect(recalled.status == 0, "a global push of before: \(recalled.output)")
        }

        @Test("D15: each user of a shared device receives a global push for users") func sharedDevice() async throws {
            let payload = UUID().uuidString
            try await push("NEWS-USER", to: nil, [payload], expecting: "SUCCESS")
            for user in ["first", "second"] {
                let device = device("shared", user: user)
                try await device.connected {
                    try await eventually("\(user) has it", within: .seconds(10)) {
                        device.payloads("NEWS-USER").contains(payload)
                    }
                }
                let again = self.device("shared", user: user)
                try await again.connected(gateway: 1) { try await mark(again) }
                #expect(!again.payloads("NEWS-USER").contains(payload))
            }
        }

        @Test("D7: a store that was restored from a backup gets again the data since then, with a mark")
        func olderStore() async throws {
            let files = ["", "-wal", "-shm"].map { "older-0.sqlite" + $0 }
            func copy(_ suffix: String, back: Bool = false) throws {
                for file in files {
                    let (store, backup) = (
                        stack.folder.appending(path: file), stack.folder.appending(path: file + suffix)
                    )
                    let (from, to) = back ? (backup, store) : (store, backup)
                    try? FileManager.default.removeItem(at: to)
                    if FileManager.default.fileExists(atPath: from.path) {
                        try FileManager.default.copyItem(at: from, to: to)
                    }
                }
            }
            let before = device("older")
            try await before.connected {
                try await push("UCHAT", to: before.user, ["kept"], expecting: "SUCCESS")
                try await shows(before, "UCHAT", ["kept"])
            }
            try copy(".backup")
            let since = device("older")
            try await since.connected {
                try await push("UCHAT", to: since.user, ["lost"], expecting: "SUCCESS")
                try await shows(since, "UCHAT", ["lost"])
                try await eventually("the acknowledgement is on record", within: .seconds(10)) {
                    try await stack.ask(
                        """
                        SELECT count(*) FROM sync_point p JOIN channel c USING (channel_id)
                        WHERE c.target = '\(since.user)' AND p.acknowledged_id = c.head
                        """) == "1"
                }
            }
            try copy(".backup", back: true)
            let after = device("older")
            try await after.connected { try await shows(after, "UCHAT", ["lost"]) }
            #expect(after.received.map(\.isReplay) == [true] && after.events.contains(.storeRolledBack))
        }
    }
}
