import BusMessages
import Foundation
import MobileSync
import SwiftProtobuf
import TestSupport
import Testing

extension SteadySystem {
    @Suite("Operators: audit records, devices, two operators")
    struct PersonTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        private func tool(_ arguments: String...) async throws -> String {
            let outcome = try await stack.tool(arguments)
            guard outcome.status == 0 else { throw Failure("\(arguments): \(outcome.output)") }
            return outcome.output
        }

        @Test("C9, SEC15: pushes, recalls, revocations and changes by the tool are recorded; backend calls are not")
        func records() async throws {
            let instance = "people_app"
            _ = try await tool("instance", "create", instance)
            _ = try await tool("config", "create", "NEWS", "--instance", instance)
            let api = "http://127.0.0.1:\(stack.apis[0])"
            let push = ["--instance", instance, "--biz-type", "NEWS", "--to", "u9", "--id", "m1"]
            let pushed = try await stack.tool(["push", "--api", api] + push + ["--os", "iOS", "CANARY-PAYLOAD"])
            #expect(pushed.output.contains("NOT_ONLINE"))
            let backend = Caller(apis: stack.apis, instance: instance)
            _ = await backend.call("NEWS", to: "u9", id: "m2", payload: "x")
            let recalled = try await stack.tool(["recall"] + push)
            #expect(recalled.output.contains(#""msg":"SUCCESS""#) && recalled.output.contains(#""oplogId":1"#))
            _ = try await stack.tool(["recall", "--api", api] + push.dropLast() + ["m2"])
            #expect(try await tool("revoke", "--instance", instance, "--user", "u9").contains("SUCCESS"))
            _ = try await tool("instance", "set", instance, "--require-signature")
            _ = try await tool("instance", "set", instance, "--require-signature")
            let list = try await tool("records", "list", "--instance", instance)
            let actions = list.split(separator: "\n").map { $0.split(separator: "\t")[3] }
            #expect(
                actions == [
                    "enable-signature", "revoke-sessions", "recall", "create-sync", "create-configuration",
                    "create-instance",
                ])
            let synced = try await tool("records", "list", "--instance", instance, "--action", "create-sync")
            let number = try #require(synced.split(separator: "\t").first)
            let shown = try await tool("records", "show", "\(number)")
            #expect(shown.contains(#"target: "u9""#) && shown.contains(#"osType: "iOS""#))
            let export = try await tool("records", "export")
            #expect(!export.contains("CANARY") && export.contains(#""action":"enable-signature""#))
        }

        @Test("SEC15: the tool verifies the chain and its anchor; it finds a change in the database")
        func verify() async throws {
            let anchor = try await tool("records", "verify").trimmingCharacters(in: .whitespacesAndNewlines)
            _ = try await tool("instance", "create", "anchor_app")
            _ = try await tool("records", "verify", "--anchor", anchor)
            let lastDigit = anchor.last == "0" ? "1" : "0"
            let wrong = try await stack.tool(["records", "verify", "--anchor", anchor.dropLast() + lastDigit])
            #expect(wrong.status != 0)
            let database = stack.database()
            try await database.execute("UPDATE operation_record SET subject = subject || 'x' WHERE number = 2")
            let found = try await stack.tool(["records", "verify"])
            #expect(found.status != 0 && found.output.contains("record 2 was altered"))
            try await database.execute("UPDATE operation_record SET subject = left(subject, -1) WHERE number = 2")
            _ = try await tool("records", "verify")
            await database.close()
        }

        @Test(
            "C1, C7: a device is shown, an operator disconnects it, and it reconnects by itself and gets all its data")
        func disconnect() async throws {
            let device = TestDevice(stack, user: "c1-u", device: "c1-d")
            try await device.connected {
                try await push("UCHAT", to: "c1-u", ["before"], expecting: "SUCCESS")
                try await shows(device, "UCHAT", ["before"])
                let shown = try await tool("devices", "show", "--instance", Stack.instance, "--device", "c1-d")
                #expect(shown.contains("user c1-u") && shown.contains("\tsince 20"))
                #expect(shown.contains("UCHAT\tuser\tsync point 1\thead 1\tcaught up"))
                #expect(try await isDisconnected())
                try await eventually("it was closed with the operator's code", within: .seconds(10)) {
                    Self.codes(of: device).contains(2_004)
                }
                _ = try await caller.push("UCHAT", to: "c1-u", id: "c1-u-after", payload: "after")
                try await shows(device, "UCHAT", ["before", "after"])
            }
            try await eventually("it is gone", within: .seconds(10)) { try await !isDisconnected() }
            let records = try await tool("records", "list", "--action", "disconnect-device")
            #expect(records.contains("\tc1-d") && records.contains("mssctl:"))
        }

        /// Whether the service disconnected the device; false when it was not connected.
        private func isDisconnected() async throws -> Bool {
            let name = ["--instance", Stack.instance, "--device", "c1-d"]
            return try await stack.tool(["devices", "disconnect"] + name).status == 0
        }

        private static func codes(of device: TestDevice) -> [UInt32] {
            device.events.compactMap { event in
                guard case .closed(let code, _) = event else { return nil }
                return code
            }
        }

        @Test(
            "C4, C13: the second of two operators is told of the first change, and nothing of the first change is lost")
        func twoOperators() async throws {
            _ = try await tool("instance", "create", "two_app", "--name", "none")
            _ = try await tool("config", "create", "TWO", "--instance", "two_app")
            try await Operator.connected(stack) { person in
                let seen = try await person.snapshot("two_app")
                _ = try await tool("instance", "set", "two_app", "--name", "first")
                _ = try await tool("config", "set", "TWO", "--instance", "two_app", "--description", "first")
                let second = try await person.change {
                    $0.modifyInstance = seen.instance
                    $0.modifyInstance.name = "second"
                }
                #expect(second.stale && second.refusal.contains("in the meantime"))
                let configuration = try await person.change {
                    $0.modifyConfiguration = seen.configuration
                    $0.modifyConfiguration.description_p = "second"
                }
                #expect(configuration.stale)
                let unknown = try await person.change { $0.deleteConfiguration.bizType = "NO" }
                #expect(!unknown.stale && !unknown.refusal.isEmpty)
                let now = try await person.snapshot("two_app")
                #expect(now.instance.name == "first" && now.instance.revision == 2)
                #expect(now.configuration.description_p == "first" && now.configuration.revision == 2)
            }
            let again = try await stack.tool(["instance", "create", "two_app"])
            #expect(again.status != 0 && again.output.contains("exists"))
        }

        @Test("C8, C11: accounts of the console by the tool: invited, given a role, listed, removed, and recorded")
        func accounts() async throws {
            _ = try await tool("instance", "create", "accounts_app")
            let name = "tool-alice"
            let invited = try await tool("console", "accounts", "invite", name, "--instance", "accounts_app")
            #expect(invited.contains("http://127.0.0.1:7090/choose-password#"))
            let again = try await tool(
                "console", "accounts", "invite", name, "--everywhere", "--console", "https://console.example")
            #expect(again.hasPrefix("https://console.example/choose-password#"))
            let other = ["--instance", Stack.instance]
            _ = try await tool("console", "accounts", "role", name, "operator", "--instance", Stack.instance)
            func line() async throws -> String? {
                try await tool("console", "accounts").split(separator: "\n").map(String.init)
                    .first { $0.hasPrefix(name + "\t") }
            }
            let roles = "accounts_app: viewer, \(Stack.instance): operator"
            #expect(try await line() == "\(name)\tinvited\tpassword alone\t\(roles)")
            _ = try await tool("console", "accounts", "role", name, "none", "--instance", "accounts_app")
            #expect(try await line()?.hasSuffix("\t\(Stack.instance): operator") == true)
            for wrong in [
                ["role", name, "none"] + other, ["role", name, "king"] + other, ["role", name, "viewer"],
                ["role", name, "viewer", "--instance", "none_app"], ["role", "tool-nobody", "viewer"] + other,
                ["invite", "a b"] + other, ["remove", "tool-nobody"],
            ] {
                let refused = try await stack.tool(["console", "accounts"] + wrong)
                #expect(refused.status != 0, "\(wrong)")
            }
            _ = try await tool("console", "accounts", "remove", name)
            #expect(try await line() == nil)
            let records = try await tool("records", "list").split(separator: "\n").filter { $0.contains("\t" + name) }
            #expect(
                records.map { $0.split(separator: "\t")[3] } == [
                    "remove-user", "modify-user", "modify-user", "invite-user", "invite-user", "create-user",
                ])
            #expect(records.allSatisfy { $0.contains("mssctl:") })
        }

        @Test("C1, C7, C11: figures by the tool: an instance's, and the pushes of a user, page by page")
        func figures() async throws {
            let instance = "queries_app"
            _ = try await tool("instance", "create", instance)
            _ = try await tool("config", "create", "NEWS", "--instance", instance)
            let backend = Caller(apis: stack.apis, instance: instance)
            for number in 1...3 { _ = await backend.call("NEWS", to: "u7", id: "m\(number)", payload: "x") }
            func query(_ arguments: String...) async throws -> [String] {
                try await tools(["figures", "query", "--instance", instance] + arguments)
            }
            try await eventually("the pushes are in the figures", within: .seconds(20)) {
                try await query("--user", "u7").first == "pushes\t3"
            }
            let first = try await query("--user", "u7", "--limit", "2")
            #expect(first.count == 4 && first[1] == "arrivals\t0")
            #expect(first[2].contains("\tNEWS\t3\tappointed\tnot pushed\tnot arrived"))
            let cursor = String(first[3].prefix { $0 != "\t" })
            let rest = try await query("--user", "u7", "--before", cursor)
            #expect(rest.count == 3 && rest[2].contains("\tNEWS\t1\t"))
            #expect(try await query("--device", "u7") == ["pushes\t0", "arrivals\t0"])
            let overview = try await tools(["figures", "overview", "--instance", instance])
            #expect(overview.contains("pushes\t3") && overview.contains("not arrived, of 30 days\t3"))
            #expect(overview.contains("accept to arrival, median\tnone arrived"))
            #expect(try await stack.tool(["figures", "query", "--instance", instance]).status != 0)
        }

        private func tools(_ arguments: [String]) async throws -> [String] {
            let outcome = try await stack.tool(arguments)
            guard outcome.status == 0 else { throw Failure("\(arguments): \(outcome.output)") }
            return outcome.output.split(separator: "\n").map(String.init)
        }

        @Test("C8: the tool requests the tenant's verdict on a session") func validator() async throws {
            let file = stack.folder.appending(path: "session-under-test")
            for (session, word) in [("session", "valid"), ("bad-session", "invalid")] {
                try session.write(to: file, atomically: true, encoding: .utf8)
                let said = try await tool(
                    "instance", "test-validator", "--instance", Stack.instance, "--user", "u", "--session-file",
                    file.path)
                #expect(said.hasPrefix(word))
            }
        }
    }
}
