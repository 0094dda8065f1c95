import Foundation
import TestSupport
import Testing

/// The file with the command that runs the Java client's test programs; nil: no Java tests.
private let commandFile = ProcessInfo.processInfo.environment["MSS_TEST_JAVA"]

extension SecondSteadySystem {
    /// The Java client as a process. Needs `MSS_TEST_JAVA`, the file `.build-java/command` that
    /// `Tests/JavaTests/run.sh` writes; `deploy/test` sets it.
    @Suite("Java client", .enabled(if: commandFile != nil))
    struct JavaClientTests {
        private struct Report: Decodable {
            struct Item: Decodable {
                let name: String
                let verdict: String
                let seen: String
            }

            let cases: [Item]
            var failures: [String] { cases.filter { $0.verdict != "pass" }.map { "\($0.name): \($0.seen)" } }
        }

        let stack: Stack

        init() throws { stack = try Stack.running }

        private var api: String { "http://127.0.0.1:\(stack.apis[0])" }
        private var gateway: String { "\(stack.gateways[0])" }

        /// The command that runs a test program.
        private func program(_ name: String) throws -> [String] {
            let file = URL(fileURLWithPath: try requireValue(commandFile, "MSS_TEST_JAVA is not set"))
            let words = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
            return words + ["org.mobilesync.tests.\(name)"]
        }

        /// Runs a command that ends by itself, and checks its exit status.
        private func run(_ command: [String]) async throws {
            let outcome = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/env"), command,
                environment: ["PATH": "/usr/bin:/bin", "HOME": stack.folder.path, "PYTHONDONTWRITEBYTECODE": "1"])
            #expect(outcome.status == 0, "\(outcome.output)")
        }

        private func script(_ name: String) -> String {
            ProjectFolder.url.appending(path: "Tests/JavaTests/\(name)").path
        }

        private func conformance(_ more: [String], program own: [String] = []) async throws -> Report {
            let outcome = try await stack.tool(
                ["conformance", "client", "--no-confirm-arguments=--no-confirm", "--json"] + more + ["--"]
                    + program("ConformanceDriver") + [
                        "--host", "{host}", "--port", "{port}", "--ca", "{ca}", "--instance", "{instance}", "--device",
                        "{device}", "--user", "{user}", "--session", "{session}", "--store", "{store}",
                        "--app-version", "{app-version}",
                    ] + own)
            let line = outcome.output.split(separator: "\n").last { $0.hasPrefix("{") }
            return try JSONDecoder().decode(
                Report.self, from: Data(try requireValue(line, "no report: \(outcome.output)").utf8))
        }

        @Test("the Java client conforms to DeviceProtocol.md") func conforms() async throws {
            // A Java program starts in half a second, so fewer cases run at once than for the Swift client.
            let report = try await conformance(["--at-once", "8"])
            #expect(report.cases.count > 110)
            #expect(report.failures == [])
        }

        @Test("SEC9: the Java client signs and keeps secrets as DeviceProtocol.md requires")
        func identity() async throws {
            let signed = try await SignedInstance.make(stack, "conformance_java")
            let (key, secretFile) = try await signed.makeKeyFile()
            let options = ["--app-key", key, "--app-secret-file", secretFile]
            let report = try await conformance(
                ["--filter", "signed/,secret/,close/5004"] + options, program: options)
            #expect(report.cases.count == 4)
            #expect(report.failures == [])
        }

        @Test(
            "K4: the Java client, killed again and again: every oplog arrives, in order, and none repeats",
            arguments: [("plain", TestGear.count(20, soak: 200)), ("websocket", TestGear.count(8, soak: 40))])
        func killed(transport: String, kills: Int) async throws {
            try await run([
                "python3", script("kills.py"), "--api", api, "--gateway-port", gateway, "--ca",
                stack.certificateAuthority, "--instance", Stack.instance, "--transport", transport, "--kills",
                "\(kills)",
            ])
        }

        @Test("K1 to K7, K10: the guide's Android sample, rebuilt, runs on the Java client")
        func sample() async throws {
            let printed = try await stack.tool([
                "instance", "meta-config", Stack.instance, "--server", "127.0.0.1", "--port", gateway,
            ])
            let settings = stack.folder.appending(path: "java-sample.config")
            try Data(printed.output.utf8).write(to: settings)
            try await run([
                "python3", script("sample.py"), "--api", api, "--meta-config", settings.path, "--ca",
                stack.certificateAuthority, "--mssctl", StackPlan.binaries.appending(path: "mssctl").path,
                "--instance", Stack.instance,
            ])
        }

        @Test("the Java client's subscription parameters: matching data arrives, older data too, each oplog once")
        func parameters() async throws {
            let made = try await stack.tool([
                "config", "create", "JAVA-FILTERED", "--instance", Stack.instance, "--description", "filtered",
                "--repush", "all", "--attributes", "region text", "--parameters", "region text = \"north\"",
                "--filter", "region == $region",
            ])
            try #require(made.status == 0, "\(made.output)")
            try await run(
                program("ParameterDriver") + [
                    api, gateway, stack.certificateAuthority, Stack.instance, "JAVA-FILTERED",
                ])
        }

        @Test("H1, H5, H6, H7, H9: the Java backend client pushes, repeats, recalls and traces")
        func backend() async throws {
            let signed = try await SignedInstance.make(stack, "backend_java")
            let (key, secretFile) = try await signed.makeKeyFile(purpose: "backend")
            try await run(
                program("BackendDriver") + [api, gateway, stack.certificateAuthority, signed.id, key, secretFile])
        }

        @Test("H2: programs that call the API as the guide's Java samples do push to a user, a device and all")
        func backendSamples() async throws {
            try await run(
                program("BackendSampleDriver") + [api, gateway, stack.certificateAuthority, Stack.instance])
        }

        @Test(
            "the Java client's data, lists, suspension, operations and push token",
            arguments: ["plain", "websocket"])
        func features(transport: String) async throws {
            try await run(
                program("StackDriver") + [api, gateway, stack.certificateAuthority, Stack.instance, transport])
        }
    }
}
