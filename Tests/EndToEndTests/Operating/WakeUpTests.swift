import Foundation
import MobileSync
import TestSupport
import Testing

extension SecondRunningSystem {
    /// `push_providers.py` plays the providers: it speaks HTTP/2 and checks the caller's credentials.
    @Suite("Wake-up")
    struct WakeUpTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        /// One request to a provider, and its response.
        private struct Line: Decodable {
            let provider: String
            let token: String
            let status: Int
        }

        private var folder: URL { stack.folder.appending(path: "wake-up") }

        private func said(of token: String) throws -> [Int] {
            let text = (try? String(contentsOf: folder.appending(path: "said.jsonl"), encoding: .utf8)) ?? ""
            // The last line can be incomplete.
            return text.split(separator: "\n").compactMap { try? JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
                .filter { $0.token == token }.map(\.status)
        }

        private func openssl(_ arguments: [String]) async throws {
            let outcome = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/openssl"), arguments, environment: ["PATH": "/usr/bin:/bin"])
            guard outcome.status == 0 else { throw Failure("openssl \(arguments): \(outcome.output)") }
        }

        /// Creates the keys of the notifier's credentials, and the files that name them.
        private func prepare(port: Int) async throws {
            try? FileManager.default.removeItem(at: folder)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            func path(_ name: String) -> String { folder.appending(path: name).path }
            try await openssl([
                "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path("apns.p8"),
            ])
            try await openssl(["genpkey", "-algorithm", "RSA", "-out", path("fcm.key")])
            for name in ["apns.p8", "fcm.key"] {
                try await openssl(["pkey", "-in", path(name), "-pubout", "-out", path(name + ".pub")])
            }
            let account = [
                "project_id": "bank", "private_key_id": "1", "client_email": "mss@bank.example",
                "private_key": try String(contentsOfFile: path("fcm.key"), encoding: .utf8),
                "token_uri": "https://127.0.0.1:\(port)/token",
            ]
            try JSONEncoder().encode(account).write(to: folder.appending(path: "fcm.json"))
            try """
            {"apps": [{"instanceId": "\(Stack.instance)",
              "apns": {"keyFile": "\(path("apns.p8"))", "keyId": "KEY1234567", "teamId": "TEAM123456",
                "topic": "com.example.bank", "url": "https://127.0.0.1:\(port)"},
              "fcm": {"serviceAccountFile": "\(path("fcm.json"))", "url": "https://127.0.0.1:\(port)"}}]}
            """.write(to: folder.appending(path: "apps.json"), atomically: true, encoding: .utf8)
        }

        /// Runs the body with both providers and a notifier.
        private func withNotifier(_ body: () async throws -> Void) async throws {
            let ports = try FreePorts.find(2)
            try await prepare(port: ports[0])
            func path(_ name: String) -> String { folder.appending(path: name).path }
            let script = ProjectFolder.url.appending(path: "Tests/EndToEndTests")
            let providers = Supervised(
                name: "providers", executable: URL(fileURLWithPath: "/usr/bin/python3"),
                arguments: [
                    script.appending(path: "push_providers.py").path, "--port", "\(ports[0])", "--file",
                    path("said.jsonl"), "--certificate", stack.folder.appending(path: "tls/server.pem").path, "--key",
                    stack.folder.appending(path: "tls/server.key").path, "--apns-key", path("apns.p8.pub"),
                    "--fcm-key", path("fcm.key.pub"), "--project", "bank",
                ], environment: ["PATH": "/usr/bin:/bin"], log: folder.appending(path: "providers.log"))
            try providers.start()
            defer { providers.stop() }
            let notifier = stack.notifier([
                "MSS_HEALTH_PORT": "\(ports[1])", "MSS_NOTIFIER_APPS_FILE": path("apps.json"),
                "MSS_NOTIFIER_AUTHORITY_FILE": stack.certificateAuthority,
            ])
            try notifier.start()
            defer { notifier.stop() }
            try await eventually("the notifier is ready", within: .seconds(30)) {
                (try? await stack.get("http://127.0.0.1:\(ports[1])/readyz"))?.status == 200
            }
            try await body()
        }

        /// Connects the device so that it reports its push token, and disconnects.
        private func registers(_ device: TestDevice) async throws {
            try await device.connected()
            try await eventually("\(device.device) is gone", within: .seconds(20)) {
                let list = try await stack.tool([
                    "devices", "list", "--instance", Stack.instance, "--user", device.user,
                ])
                return !list.output.contains(device.device)
            }
        }

        @Test(
            "a sleeping device is woken once for a burst, connects and gets all of it; a connected device is not woken")
        func burst() async throws {
            try await withNotifier {
                for (token, text) in [
                    (SyncPushToken.apns(Data([0xA0, 0x01])), "a001"), (.apns(Data([0xBE, 0xE0])), "bee0"),
                    (.fcm("fcm:token-1"), "fcm:token-1"),
                ] {
                    let user = "wake-\(text.prefix(3))"
                    let device = TestDevice(stack, user: user, device: "\(user)-d", pushToken: token)
                    try await registers(device)
                    let payloads = (1...20).map { "\($0)" }
                    for payload in payloads {
                        _ = try await caller.push("UCHAT", to: user, id: "\(user)-\(payload)", payload: payload)
                    }
                    try await eventually("it is woken", within: .seconds(10)) {
                        try said(of: text).contains(200)
                    }
                    try await device.connected {
                        try await shows(device, "UCHAT", payloads)
                        try await mark(device)
                    }
                    #expect(try said(of: text) == (text == "bee0" ? [503, 200] : [200]))
                    try await registers(device)
                    let pushed = ContinuousClock.now
                    _ = try await caller.push("UCHAT", to: user, id: "\(user)-again", payload: "again")
                    try await eventually("it is woken again", within: .seconds(10)) {
                        try said(of: text).count { $0 == 200 } == 2
                    }
                    try await device.connected {
                        try await eventually("it has the push", within: .seconds(10)) {
                            device.payloads("UCHAT").last == "again"
                        }
                    }
                    print("\(text): asleep, woken, and it has the push \(pushed.duration(to: .now)) after the call")
                }
            }
        }

        @Test("a token that the provider calls unregistered is not used again", arguments: ["apns", "fcm"])
        func gone(provider: String) async throws {
            let text = provider == "apns" ? "dead01" : "dead:token"
            let token = provider == "apns" ? SyncPushToken.apns(Data([0xDE, 0xAD, 0x01])) : .fcm(text)
            try await withNotifier {
                let user = "gone-\(provider)"
                let dead = TestDevice(stack, user: user, device: "\(user)-d", pushToken: token)
                let live = TestDevice(
                    stack, user: user, device: "\(user)-e", pushToken: .fcm("live:\(provider)"))
                try await registers(dead)
                try await registers(live)
                _ = try await caller.push("UCHAT", to: user, id: "\(user)-1", payload: "1")
                try await eventually("both are tried", within: .seconds(10)) {
                    let tried = try said(of: text) + said(of: "live:\(provider)")
                    return tried.sorted() == [200, provider == "apns" ? 410 : 404]
                }
                let database = stack.database()
                try await eventually("the token is removed", within: .seconds(10)) {
                    try await database.rows("SELECT FROM push_token WHERE device_id = '\(user)-d'", columns: 0).isEmpty
                }
                await database.close()
                try await registers(live)
                _ = try await caller.push("UCHAT", to: user, id: "\(user)-2", payload: "2")
                try await eventually("the other one is woken again", within: .seconds(10)) {
                    try said(of: "live:\(provider)").count == 2
                }
                #expect(try said(of: text).count == 1)
            }
        }
    }
}
