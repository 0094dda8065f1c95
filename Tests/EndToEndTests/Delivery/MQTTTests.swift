import Foundation
import TestSupport
import Testing

extension SecondRunningSystem {
    /// The clients are Eclipse's: mosquitto_sub, and Paho in Python (`deploy/test` installs both).
    @Suite("MQTT")
    struct MQTTTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        private static let environment = ["PATH": "/usr/bin:/bin"]

        /// The output of mosquitto_sub, which runs for some seconds. With a message count it would end before its
        /// answer to the last message, which would then repeat.
        private func mosquitto(_ user: String, gateway: Int, _ version: String) async throws -> [String] {
            let outcome = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/mosquitto_sub"),
                [
                    "-h", "127.0.0.1", "-p", "\(stack.gateways[gateway])", "--cafile", stack.certificateAuthority, "-i",
                    "\(user)-d", "-u", "\(Stack.instance)/\(user)", "-P", "s1", "-q", "1", "-t", "UCHAT", "-W", "8",
                    "-F",
                    "%t %p", "-V", version,
                ], environment: Self.environment)
            // The exit status after a timeout.
            #expect(outcome.status == 27, "\(outcome.output)")
            return outcome.output.split(separator: "\n").filter { $0.hasPrefix("UCHAT ") }.map(String.init)
        }

        /// One line of the Paho client.
        private struct Line: Decodable {
            let event: String?
            let code: Int?
            let granted: [Int]?
            let topic: String?
            let payload: String?
            let oplogId: String?
            let thirdMsgId: String?
        }

        private func paho(_ user: String, gateway: Int, _ arguments: [String]) async throws -> [Line] {
            let script = ProjectFolder.url.appending(path: "Tests/EndToEndTests/mqtt_device.py")
            let outcome = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/python3"),
                [
                    script.path, "--port", "\(stack.gateways[gateway])", "--ca", stack.certificateAuthority, "--client",
                    "\(user)-d", "--user", "\(Stack.instance)/\(user)", "--password", "s1", "--topic", "UCHAT",
                ] + arguments, environment: Self.environment)
            #expect(outcome.status == 0, "\(outcome.output)")
            return try outcome.output.split(separator: "\n").map { line in
                try JSONDecoder().decode(Line.self, from: Data(line.utf8))
            }
        }

        private func push(_ user: String, _ payloads: [String]) async throws {
            for payload in payloads {
                _ = try await caller.push("UCHAT", to: user, id: "\(user)-\(payload)", payload: payload)
            }
        }

        @Test(
            "D13: mosquitto_sub gets backlog and new data, in order and once, over any gateway",
            arguments: ["311", "5"])
        func mosquittoSub(version: String) async throws {
            let user = "mosquitto-\(version)"
            try await push(user, ["1", "2"])
            async let first = mosquitto(user, gateway: 0, version)
            try await eventually("it has the backlog", within: .seconds(30)) {
                try await stack.tool(["devices", "list", "--instance", Stack.instance, "--user", user]).output.contains(
                    user)
            }
            try await push(user, ["3"])
            #expect(try await first == ["UCHAT 1", "UCHAT 2", "UCHAT 3"])
            try await push(user, ["4", "5"])
            let second = try await mosquitto(user, gateway: 1, version)
            #expect(second == ["UCHAT 4", "UCHAT 5"], "\(second)")
            try await explains("UCHAT", to: user, id: "\(user)-5", "DELIVERED")
        }

        @Test(
            "D13: Paho's client gets ids with the data; unanswered data is resent; a newer connection ends the older")
        func pahoClient() async throws {
            let user = "paho-u"
            try await push(user, ["1", "2"])
            let lines = try await paho(user, gateway: 0, ["--count", "2"])
            let data = lines.filter { $0.topic != nil }
            #expect(lines.first?.event == "connected" && lines.first?.code == 0)
            #expect(data.map(\.payload) == ["1", "2"] && data.map(\.thirdMsgId) == ["paho-u-1", "paho-u-2"])
            #expect(Int64(data[0].oplogId ?? "") ?? 0 < Int64(data[1].oplogId ?? "") ?? 0)
            async let old = paho(user, gateway: 0, [])
            try await eventually("it is there", within: .seconds(30)) {
                try await stack.tool(["devices", "list", "--instance", Stack.instance, "--user", user]).output.contains(
                    user)
            }
            async let new = paho(user, gateway: 1, ["--count", "1"])
            let ended = try await old.last
            #expect(ended?.event == "disconnected" && ended?.code == 0x8E)
            try await push(user, ["3"])
            #expect(try await new.filter { $0.topic != nil }.map(\.payload) == ["3"])
        }

        /// The cases of Eclipse's interoperability tests that apply to a server without publishing clients, by name,
        /// with the MQTT versions.
        private static let cases: [(name: String, versions: [Int])] =
            [
                "basic", "zero_length_clientid", "offline_message_queueing", "overlapping_subscriptions", "keepalive",
                "redelivery_on_reconnect", "subscribe_failure", "unsubscribe", "takeover", "publishes_nothing",
            ].map { ($0, [4, 5]) }
            + [
                "user_properties", "publication_expiry", "maximum_packet_size", "server_keep_alive", "flow_control",
                "revoked_behind_window", "recalled_behind_window",
            ].map { ($0, [5]) }

        @Test("D13, H7: the interoperability cases of MQTT that apply, and recall and revocation behind a full window")
        func interoperability() async throws {
            let script = ProjectFolder.url.appending(path: "Tests/EndToEndTests/mqtt_cases.py")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (name, versions) in Self.cases {
                    for version in versions {
                        group.addTask {
                            let outcome = try await Command.run(
                                URL(fileURLWithPath: "/usr/bin/python3"),
                                [
                                    script.path, name, "\(version)", "--api", "\(stack.apis[0])", "--ports",
                                    stack.gateways.map(String.init).joined(separator: ","), "--ca",
                                    stack.certificateAuthority,
                                ], environment: Self.environment)
                            #expect(outcome.status == 0, "\(name), version \(version): \(outcome.output)")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }

        @Test("V1: a user with an invalid session, and an unknown instance, get a refusal", arguments: [4, 5])
        func refused(version: Int) async throws {
            let lines = try await paho(
                "nobody", gateway: 0, ["--user", "no_such_app/u", "--version", "\(version)", "--seconds", "10"])
            #expect(lines.contains { $0.event == "connected" && $0.code == (version == 5 ? 0x86 : 4) }, "\(lines)")
        }
    }
}
