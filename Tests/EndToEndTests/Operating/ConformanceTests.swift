import Foundation
import TestSupport
import Testing

extension SecondSteadySystem {
    @Suite("Conformance")
    struct ConformanceTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        private func runGateway(
            port: Int, instance: String = Stack.instance, _ more: [String]
        ) async throws -> ConformanceRun {
            try await ConformanceRun.of(
                stack,
                [
                    "gateway", "--port", "\(port)", "--ca", stack.certificateAuthority, "--instance", instance,
                    "--api", "http://127.0.0.1:\(stack.apis[0])", "--biz-type", "UCHAT", "--device-biz-type",
                    "DEVICE-LOCK", "--json",
                ] + more)
        }

        /// - Parameters:
        ///   - proxy: the port that the client connects to; nil: the port of the test program.
        ///   - program: further arguments of the client.
        private func runClient(
            proxy: Int? = nil, _ more: [String], program: [String] = []
        ) async throws -> ConformanceRun {
            try await ConformanceRun.of(
                stack,
                ["client", "--no-confirm-arguments=--no-confirm", "--json"] + more + [
                    "--", StackPlan.binaries.appending(path: "mssctl").path, "listen", "--json", "--host", "{host}",
                    "--port", proxy.map { "\($0)" } ?? "{port}", "--ca",
                    proxy == nil ? "{ca}" : stack.certificateAuthority, "--instance", "{instance}", "--device",
                    "{device}", "--user", "{user}", "--session", "{session}", "--store", "{store}", "--app-version",
                    "{app-version}",
                ] + program)
        }

        @Test("the gateway conforms to DeviceProtocol.md") func gateway() async throws {
            let report = try await runGateway(port: stack.gateways[0], [])
            #expect(report.cases.count > 150)
            #expect(report.failedNames == [], "\(report.failures)")
        }

        @Test("data in global channels of every kind does not disturb the conformance cases, however often they run")
        func amongGlobals() async throws {
            let instance = "conformance_global"
            func entry(_ bizType: String, _ rules: String) -> String {
                #"{"instanceId": "\#(instance)", "bizType": "\#(bizType)", "description": "", "repush": "all", \#(rules)}"#
            }
            let globals = [("USER", "user"), ("DEVICE", "device")].flatMap { name, target in
                [("LATER", "false"), ("NOW", "true")].map { time, isImmediate in
                    ("G-\(name)-\(time)", #""scope": "global", "target": "\#(target)", "immediate": \#(isImmediate)"#)
                }
            }
            let configurations =
                [
                    entry("UCHAT", #""scope": "appointed", "target": "user""#),
                    entry("DEVICE-LOCK", #""scope": "appointed", "target": "device""#),
                ] + globals.map { entry($0.0, $0.1) }
            let file = stack.folder.appending(path: "\(instance).json")
            try
                #"{"instances": [{"instanceId": "\#(instance)"}], "configurations": [\#(configurations.joined(separator: ","))]}"#
                .write(to: file, atomically: true, encoding: .utf8)
            let applied = try await stack.tool(["apply", file.path])
            #expect(applied.status == 0, "\(applied.output)")
            let caller = Caller(apis: stack.apis, instance: instance)
            for (bizType, _) in globals {
                #expect(await caller.call(bizType, to: nil, id: "one", payload: "one")?.msg == "SUCCESS")
            }
            for round in 1...3 {
                let report = try await runGateway(
                    port: stack.gateways[round % 2], instance: instance,
                    ["--filter", "summary/,history/,requests/,ack/,confirm/,delivery/"])
                #expect(report.cases.count > 30)
                #expect(report.failedNames == [], "round \(round): \(report.failures)")
            }
        }

        @Test("SEC9: gateway and client library sign and keep secrets as DeviceProtocol.md requires")
        func identity() async throws {
            let signed = try await SignedInstance.make(stack, "conformance_signed")
            let bound = try await SignedInstance.make(stack, "conformance_bound", #", "bindDevices": true"#)
            let (key, secretFile) = try await signed.makeKeyFile()
            try await signed.set("--require-signature")
            let options = ["--app-key", key, "--app-secret-file", secretFile]
            let gateway = try await runGateway(
                port: stack.gateways[0],
                ["--signed-instance", signed.id, "--binding-instance", bound.id, "--filter", "signed/,secret/"]
                    + options)
            #expect(gateway.cases.count > 20)
            #expect(gateway.failedNames == [], "\(gateway.failures)")
            let client = try await runClient(["--filter", "signed/,secret/,close/5004"] + options, program: options)
            #expect(client.cases.count == 4)
            #expect(client.failedNames == [], "\(client.failures)")
        }

        @Test("the client library conforms to DeviceProtocol.md") func client() async throws {
            let report = try await runClient([])
            #expect(report.cases.count > 110)
            #expect(report.failedNames == [], "\(report.failures)")
        }

        @Test("the conformance cases find a gateway that", arguments: BrokenImplementation.gateways)
        func brokenGateway(broken: BrokenImplementation) async throws {
            let proxy = try await FrameProxy.start(stack, before: stack.gateways[0], broken.fault)
            let report = try await runGateway(
                port: proxy.port, ["--filter", broken.cases.joined(separator: ",")])
            await proxy.stop()
            #expect(report.cases.count > 1)
            #expect(report.failedNames == [broken.finder], "\(report.failures)")
        }

        @Test("the conformance cases find a client that", arguments: BrokenImplementation.clients)
        func brokenClient(broken: BrokenImplementation) async throws {
            let port = try FreePorts.find(1)[0]
            let proxy = try await FrameProxy.start(stack, before: port, broken.fault)
            let report = try await runClient(
                proxy: proxy.port, ["--port", "\(port)", "--filter", broken.cases.joined(separator: ",")])
            await proxy.stop()
            #expect(report.cases.count > 1)
            #expect(report.failedNames == [broken.finder], "\(report.failures)")
        }
    }
}
