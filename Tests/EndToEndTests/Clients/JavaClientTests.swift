import Foundation
import TestSupport
import Testing

extension SecondSteadySystem {
    /// The Java client as a process.
    @Suite("Java client", .enabled(if: JavaProgram.isBuilt))
    struct JavaClientTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        private var api: String { "http://127.0.0.1:\(stack.apis[0])" }
        private var gateway: String { "\(stack.gateways[0])" }

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
                JavaProgram.command("ParameterDriver") + [
                    api, gateway, stack.certificateAuthority, Stack.instance, "JAVA-FILTERED",
                ])
        }

        @Test("H1, H5, H6, H7, H9: the Java backend client pushes, repeats, recalls and traces")
        func backend() async throws {
            let signed = try await SignedInstance.make(stack, "backend_java")
            let (key, secretFile) = try await signed.makeKeyFile(purpose: "backend")
            try await run(
                JavaProgram.command("BackendDriver") + [
                    api, gateway, stack.certificateAuthority, signed.id, key, secretFile,
                ])
        }

        @Test("H2: programs that call the API as the guide's Java samples do push to a user, a device and all")
        func backendSamples() async throws {
            try await run(
                JavaProgram.command("BackendSampleDriver") + [api, gateway, stack.certificateAuthority, Stack.instance])
        }

        @Test(
            "the Java client's data, lists, suspension, operations and push token",
            arguments: ["plain", "websocket"])
        func features(transport: String) async throws {
            try await run(
                JavaProgram.command("StackDriver") + [
                    api, gateway, stack.certificateAuthority, Stack.instance, transport,
                ])
        }
    }
}
