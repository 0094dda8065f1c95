import DeviceProtocol
import Foundation
import TestSupport
import Testing

extension SecondRunningSystem {
    /// TLS as a gateway offers it to devices.
    @Suite("TLS of devices")
    struct DeviceTLSTests: RuleSuite {
        let stack: Stack
        let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis)
        }

        private var authority: [String] { ["-verify_return_error", "-CAfile", stack.certificateAuthority] }
        private var certificateFile: URL { stack.folder.appending(path: "tls/server.pem") }

        /// A browser's request for the demo page.
        private func page(_ port: Int, _ arguments: [String]) async throws -> String {
            var output = ""
            try await OpenSSLProcess.withClient(port, arguments + ["-alpn", "http/1.1"]) { client in
                try client.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                try await eventually("the connection ends: \(arguments)", within: .seconds(10)) { client.hasEnded }
                output = client.output
            }
            return output
        }

        /// The certificate for new connections, as PEM.
        private func shown(_ port: Int) async throws -> String {
            let outcome = try await Command.run(
                URL(fileURLWithPath: "/bin/sh"),
                ["-c", "openssl s_client -connect 127.0.0.1:\(port) < /dev/null 2> /dev/null | openssl x509"],
                environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""])
            return outcome.output
        }

        @Test("SEC1: the devices' port takes TLS 1.2 and 1.3; TLS 1.1 and plaintext are refused")
        func versions() async throws {
            let port = stack.gateways[0]
            for version in ["-tls1_2", "-tls1_3"] {
                #expect(try await page(port, authority + [version]).contains("HTTP/1.1 200 OK"), "\(version)")
            }
            #expect(try await page(port, OpenSSLProcess.onlyTLS11).contains("alert protocol version"))
            let plain = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/env"), ["curl", "-sS", "-m", "10", "http://127.0.0.1:\(port)/"],
                environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""])
            #expect(plain.status != 0 && !plain.output.contains("html"))
        }

        @Test("SEC1: a gateway loads a new certificate while devices stay; a broken file leaves the old one in force")
        func rotation() async throws {
            let port = stack.gateways[0]
            let before = try await shown(port)
            #expect(before.contains("BEGIN CERTIFICATE"))
            let gateway = try stack.process("gateway-0")
            let device = try await RawDevice.connect(stack, device: "tls-d", user: "tls-u")
            try await device.isCaughtUp()

            try Data(before.utf8.prefix(200)).write(to: certificateFile)
            try await eventually("the broken file is noticed", within: .seconds(10)) {
                gateway.logged.contains("the previous certificate stays in force")
            }
            #expect(try await shown(port) == before)

            try FileManager.default.removeItem(at: certificateFile)
            try await stack.makeCertificates()
            try await eventually("the new certificate is in force", within: .seconds(10)) {
                let now = try await shown(port)
                return now.contains("BEGIN CERTIFICATE") && now != before
            }
            #expect(try await page(port, authority).contains("HTTP/1.1 200 OK"))
            _ = await caller.call("UCHAT", to: "tls-u", id: "tls-1", payload: "after")
            try await device.waits(for: "the push on the old connection") { _ in
                device.batches.flatMap(\.entries).contains { $0.payload == Data("after".utf8) }
            }
            try await device.disconnect()
        }

        @Test("SEC1: a gateway that requires device certificates serves only devices that have one")
        func mutual() async throws {
            try await TestCertificates.with { certificates in
                let ports = try FreePorts.find(2)
                let gateway = try stack.process("gateway-0").sibling(
                    "gateway-mutual",
                    [
                        "MSS_GATEWAY_ID": "gateway-mutual", "MSS_GATEWAY_PORT": "\(ports[0])",
                        "MSS_HEALTH_PORT": "\(ports[1])",
                        "MSS_GATEWAY_CLIENT_AUTHORITY_FILE": certificates.authorityFile,
                    ])
                try gateway.start()
                defer { gateway.stop() }
                try await eventually("the gateway is ready", within: .seconds(30)) {
                    (try? await stack.get("http://127.0.0.1:\(ports[1])/readyz"))?.status == 200
                }
                func showing(_ name: TestCertificates.Name) -> [String] {
                    ["-cert", certificates.certificateFile(name), "-key", certificates.privateKeyFile(name)]
                }
                let own = try await page(ports[0], showing(.client))
                let none = try await page(ports[0], [])
                let foreign = try await page(ports[0], showing(.foreignClient))
                #expect(own.contains("HTTP/1.1 200 OK"))
                #expect(!none.contains("HTTP/1.1") && !foreign.contains("HTTP/1.1"))
            }
        }

        @Test("SEC16: no process of the system can leave a core dump") func coreDumps() throws {
            let foreign = ["postgres", "rabbitmq", "tenant", "bad-tenants", "traces"]
            for process in stack.processes where !foreign.contains(process.name) {
                let limits = try String(contentsOfFile: "/proc/\(process.processIdentifier)/limits", encoding: .utf8)
                let line = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
                #expect(line?.split(separator: " ").suffix(3) == ["0", "0", "bytes"], "\(process.name)")
            }
        }
    }
}
