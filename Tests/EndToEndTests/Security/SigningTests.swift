import Credentials
import Foundation
import Synchronization
import TestSupport
import Testing

extension SecondRunningSystem {
    @Suite("Signed calls, keys and limits")
    struct SigningTests {
        private let stack: Stack

        init() throws { stack = try Stack.running }

        /// The caller for continuous calls, and their failures.
        private final class Traffic: Sendable {
            private let state: Mutex<(caller: SignedCaller?, failures: [String])>

            init(_ caller: SignedCaller) { state = Mutex((caller, [])) }

            /// A nil value means: the calls have stopped.
            var caller: SignedCaller? {
                get { state.withLock { $0.caller } }
                set { state.withLock { $0.caller = newValue } }
            }

            var failures: [String] { state.withLock { $0.failures } }

            func failed(_ body: String) { state.withLock { $0.failures.append(body) } }
        }

        private func tool(_ arguments: String...) async throws -> String {
            let outcome = try await stack.tool(arguments)
            guard outcome.status == 0 else { throw Failure("mssctl \(arguments): \(outcome.output)") }
            return outcome.output
        }

        /// An instance with UCHAT.
        private func make(_ instance: String, _ options: String...) async throws {
            let outcome = try await stack.tool(["instance", "create", instance] + options)
            guard outcome.status == 0 else { throw Failure(outcome.output) }
            _ = try await tool(
                "config", "create", "UCHAT", "--instance", instance, "--target", "user", "--repush", "all")
        }

        /// A backend with a new key, which every ingest knows.
        private func caller(_ instance: String, _ options: String...) async throws -> SignedCaller {
            let outcome = try await stack.tool(
                ["key", "create", "--instance", instance, "--purpose", "backend"] + options)
            guard outcome.status == 0 else { throw Failure(outcome.output) }
            func value(_ name: String) throws -> String {
                let line = outcome.output.split(separator: "\n").first { $0.hasPrefix("\(name)\t") }
                return try requireValue(line.map { String($0.dropFirst(name.count + 1)) }, outcome.output)
            }
            let secret = try requireValue(Data(base64Encoded: try value("secret")), "no Base64")
            let caller = SignedCaller(
                apis: stack.apis, instance: instance, keyID: try value("key"), secret: [UInt8](secret))
            for api in 0..<2 {
                try await eventually("ingest \(api) knows the key", within: .seconds(2)) {
                    // A timestamp from long ago: it is refused only after the signature was found correct.
                    try await caller.push(to: "u", id: "1", api: api, timestamp: 1).body.contains("set your clock")
                }
            }
            return caller
        }

        @Test(
            "SEC6, C8: with signing on, unsigned calls are refused everywhere at once; signed ones are stored once")
        func switching() async throws {
            let instance = "sign_switch"
            try await make(instance)
            let caller = try await caller(instance)
            func unsigned(_ api: Int) async throws -> UInt {
                try await SignedCaller.post(
                    api: stack.apis[api], "/webapi/sync/single?instanceId=\(instance)",
                    Data(#"{"bizType":"UCHAT","linkToken":"u","thirdMsgId":"open","payload":"p"}"#.utf8), [:]
                ).status
            }
            for api in 0..<2 { #expect(try await unsigned(api) == 200) }
            #expect(try await tool("instance", "set", instance, "--require-signature").contains("in force"))
            for api in 0..<2 { #expect(try await unsigned(api) == 401) }
            let list = try await tool("instance", "list")
            #expect(list.split(separator: "\n").contains { $0.hasPrefix(instance) && $0.contains("signed calls only") })
            let nonce = HexText.of(RandomBytes.make(16))
            let first = try await caller.push(to: "u", id: "a", nonce: nonce)
            #expect(first.status == 200 && first.body.contains("NOT_ONLINE"))
            for api in 0..<2 {
                let again = try await caller.push(to: "u", id: "a", api: api, nonce: nonce)
                #expect(again.status == 401 && again.body.contains("REPLAY"))
            }
            #expect(try await tool("instance", "set", instance, "--no-require-signature").contains("in force"))
            try await eventually("unsigned calls are accepted again", within: .seconds(2)) {
                let statuses = [try await unsigned(0), try await unsigned(1)]
                return statuses == [200, 200]
            }
        }

        @Test("SEC6: of one nonce sent a hundred times at once to both ingests, one call is accepted")
        func race() async throws {
            try await make("sign_race", "--require-signature")
            let caller = try await caller("sign_race")
            let nonce = HexText.of(RandomBytes.make(16))
            let statuses = try await withThrowingTaskGroup(of: UInt.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        try await caller.push(to: "u", id: "m\(number)", api: number % 2, nonce: nonce).status
                    }
                }
                return try await group.reduce(into: [UInt]()) { $0.append($1) }
            }
            #expect(statuses.count { $0 == 200 } == 1 && statuses.count { $0 == 401 } == 99)
        }

        @Test("SEC7: a key is accepted for its own instance alone")
        func otherInstance() async throws {
            try await make("sign_a", "--require-signature")
            try await make("sign_b")
            let caller = try await caller("sign_a")
            #expect(try await caller.push(to: "u", id: "1").status == 200)
            let other = try await caller.push(to: "u", id: "1", instance: "sign_b")
            #expect(other.status == 403 && other.body.contains("\"attempted\":false"))
        }

        @Test("H9: a key is replaced under load: no call fails, and the revoked key is refused within 2 s")
        func rotation() async throws {
            let instance = "sign_rotate"
            try await make(instance, "--require-signature")
            let old = try await caller(instance)
            let traffic = Traffic(old)
            let counts = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<2 {
                    group.addTask {
                        var count = 0
                        while let caller = traffic.caller {
                            let answer = try await caller.push(to: "u", id: "\(number)-\(count)", api: number)
                            if answer.status != 200 { traffic.failed(answer.body) }
                            count += 1
                        }
                        return count
                    }
                }
                // Also after an error, the callers stop.
                defer { traffic.caller = nil }
                let new = try await caller(instance)
                let third = try await stack.tool(["key", "create", "--instance", instance, "--purpose", "backend"])
                #expect(third.status != 0 && third.output.contains("2 keys"))
                traffic.caller = new
                // Calls that were signed with the old key have been answered.
                _ = try await new.push(to: "u", id: "switched")
                async let revoked = tool("key", "revoke", old.keyID, "--instance", instance)
                for api in 0..<2 {
                    try await eventually("ingest \(api) refuses the old key", within: .seconds(2)) {
                        try await old.push(to: "u", id: "old", api: api).status == 401
                    }
                }
                #expect(try await revoked.contains("in force"))
                traffic.caller = nil
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(traffic.failures == [])
            #expect(counts.allSatisfy { $0 > 0 })
            let list = try await tool("key", "list", "--instance", instance)
            #expect(list.split(separator: "\n").count == 1 && !list.contains(old.keyID))
        }

        @Test("A day's quota of pushes holds over both ingests, to the last push; then 429 until midnight")
        func quota() async throws {
            try await make("sign_quota", "--require-signature")
            let caller = try await caller("sign_quota", "--pushes-per-day", "30")
            let answers = try await withThrowingTaskGroup(of: SignedCaller.Answer.self) { group in
                for number in 0..<60 {
                    group.addTask { try await caller.push(to: "u", id: "m\(number)", api: number % 2) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.count { $0.status == 200 } == 30)
            let refused = answers.filter { $0.status == 429 }
            #expect(refused.count == 30)
            for answer in refused {
                let wait = try #require(answer.headers["retry-after"].flatMap { Int($0) })
                #expect((1...86_400).contains(wait) && answer.headers["ratelimit-limit"] == "30")
            }
            // A repeat costs no quota, but needs a quota of at least one.
            let stored = try await stack.database().rows(
                """
                SELECT count(*)::text FROM oplog JOIN channel USING (channel_id) WHERE instance_id = 'sign_quota'
                """, columns: 1)
            #expect(stored == [["30"]])
        }

        @Test("A caller over its rate is answered 429 with Retry-After, another one is not")
        func rate() async throws {
            try await make("sign_rate", "--require-signature")
            let slow = try await caller("sign_rate", "--requests-per-second", "1")
            let fast = try await caller("sign_rate")
            let statuses = try await withThrowingTaskGroup(of: [UInt].self) { group in
                for caller in [slow, fast] {
                    group.addTask {
                        var statuses: [UInt] = []
                        for number in 0..<20 {
                            let answer = try await caller.push(to: "u", id: "\(caller.keyID)-\(number)")
                            statuses.append(answer.status)
                            #expect((answer.headers["ratelimit-limit"] == "1") == (caller.keyID == slow.keyID))
                            if answer.status == 429 { #expect(answer.headers["retry-after"] == "1") }
                        }
                        return caller.keyID == slow.keyID ? statuses : statuses.map { $0 == 200 ? 0 : $0 }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(statuses.contains(429) && statuses.contains(200) && statuses.count { $0 == 0 } == 20)
        }

        @Test("SEC16: secrets are stored encrypted: neither the database nor any log contains one")
        func sealed() async throws {
            try await make("sign_sealed", "--require-signature")
            let caller = try await caller("sign_sealed")
            _ = try await caller.push(to: "u", id: "1")
            let hex = HexText.of(caller.secret)
            let rows = try await stack.database().rows(
                "SELECT encode(sealed_secret, 'hex') FROM app_key WHERE key_id = '\(caller.keyID)'", columns: 1)
            let sealed = try #require(rows.first?[0])
            #expect(!sealed.contains(hex) && sealed.count > hex.count)
            let dump = try await stack.database().rows(
                "SELECT query_to_xml('TABLE operation_record', true, false, '')::text", columns: 1)
            let forms = [hex, Data(caller.secret).base64EncodedString()]
            var texts = [dump.first?[0] ?? ""]
            for file in try FileManager.default.contentsOfDirectory(at: stack.folder, includingPropertiesForKeys: nil)
            where file.pathExtension == "log" {
                texts.append(String(decoding: try Data(contentsOf: file), as: UTF8.self))
            }
            #expect(texts.count > 5)
            for text in texts { for form in forms { #expect(!text.contains(form)) } }
            _ = try await tool("key", "reseal")
            #expect(try await caller.push(to: "u", id: "2").status == 200)
        }

        @Test("H9: the tool signs, with its options and with its settings")
        func toolSigns() async throws {
            try await make("sign_tool", "--require-signature")
            let caller = try await caller("sign_tool")
            let file = stack.folder.appending(path: "sign_tool.secret")
            try Data(caller.secret).base64EncodedString().write(to: file, atomically: true, encoding: .utf8)
            let api = "http://127.0.0.1:\(stack.apis[1])"
            let name = ["--api", api, "--instance", "sign_tool", "--biz-type", "UCHAT", "--to", "u ä&=", "--id", "m"]
            let key = ["--key", caller.keyID, "--secret-file", file.path]
            let unsigned = try await stack.tool(["push"] + name + ["hello"])
            #expect(unsigned.status == 1 && unsigned.output.contains("signed calls only"))
            let pushed = try await stack.tool(["push"] + name + key + ["hello"])
            #expect(pushed.status == 0 && pushed.output.contains("NOT_ONLINE"))
            let explained = try await stack.tool(["explain"] + name + key)
            #expect(explained.output.contains("thirdMsgId m"), "\(explained.output)")
            let recalled = try await stack.tool(["recall"] + name + key)
            #expect(recalled.status == 0, "\(recalled.output)")
        }

        @Test("H9: the example of deploy/guides/Signing.md works as written")
        func example() async throws {
            let root = ProjectFolder.url
            let readme = try String(contentsOf: root.appending(path: "deploy/guides/Signing.md"), encoding: .utf8)
            let part = try #require(readme.components(separatedBy: "```python\n").dropFirst().first)
            let script = stack.folder.appending(path: "example.py")
            try #require(part.components(separatedBy: "```").first)
                .write(to: script, atomically: true, encoding: .utf8)
            try await make("sign_example", "--require-signature")
            let caller = try await caller("sign_example")
            let file = stack.folder.appending(path: "example.secret")
            try Data(caller.secret).base64EncodedString().write(to: file, atomically: true, encoding: .utf8)
            let outcome = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/env"), ["python3", script.path],
                environment: [
                    "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "", "INSTANCE": "sign_example",
                    "API": "http://127.0.0.1:\(stack.apis[0])", "KEY": caller.keyID, "SECRET_FILE": file.path,
                ])
            #expect(outcome.status == 0 && outcome.output.contains("NOT_ONLINE"), "\(outcome.output)")
        }
    }
}
