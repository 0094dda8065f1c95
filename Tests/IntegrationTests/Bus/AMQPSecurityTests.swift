import Foundation
import Synchronization
import TestSupport
import Testing

@testable import AMQP

@Suite("AMQP driver over TLS", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct AMQPSecurityTests {
    private func configuration(
        _ port: Int, host: String = "localhost", _ security: AMQPSecurity?
    ) -> AMQPConfiguration {
        AMQPConfiguration(host: host, port: port, user: "guest", password: "guest", security: security)
    }

    /// The reason why the connection fails; nil when it succeeds. On a thread of its own, because connecting blocks.
    private func refusal(_ configuration: AMQPConfiguration) async -> String? {
        await withCheckedContinuation { continuation in
            Thread {
                do throws(AMQPError) {
                    _ = try AMQPConnection(
                        configuration, at: configuration.addresses[0], generation: 1, watchdog: Watchdog())
                    continuation.resume(returning: nil)
                } catch {
                    continuation.resume(returning: error.message)
                }
            }.start()
        }
    }

    @Test("SEC1: a client accepts a broker only with a valid certificate of its authority, for its name, over TLS 1.2")
    func counterparts() async throws {
        try await TestCertificates.with { certificates in
            let security = AMQPSecurity(authorityFile: certificates.authorityFile)
            let cases: [(TestCertificates.Name, [String], String)] = [
                (.foreign, [], "SSL peer cert verification failed"),
                (.expired, [], "SSL peer cert verification failed"),
                (.misnamed, [], "SSL hostname verification failed"),
                (.server, OpenSSLProcess.onlyTLS11, "SSL handshake failed"),
            ]
            for (name, arguments, words) in cases {
                try await OpenSSLProcess.withServer(certificates, name, arguments) { port, _ in
                    let reason = await refusal(configuration(port, security))
                    #expect(reason?.contains(words) == true, "\(name): \(reason ?? "connected")")
                }
            }
            try await OpenSSLProcess.withServer(certificates, .server, OpenSSLProcess.onlyTLS11) { port, _ in
                try await OpenSSLProcess.withClient(port, OpenSSLProcess.onlyTLS11 + ["-state"]) { client in
                    try await eventually("the counterpart speaks TLS 1.1", within: .seconds(5)) {
                        client.output.contains("TLS read finished")
                    }
                }
            }
        }
    }

    @Test("SEC1: a broker over TLS refuses plaintext and TLS 1.1; over TLS bodies of any size arrive")
    func broker() async throws {
        try await SecureServer.with(.rabbitmq) { server in
            let security = AMQPSecurity(authorityFile: server.certificates.authorityFile)
            #expect(await refusal(configuration(server.port, nil)) != nil, "plaintext")
            let foreign = AMQPSecurity(authorityFile: server.certificates.otherAuthorityFile)
            #expect(await refusal(configuration(server.port, foreign))?.contains("peer cert verification") == true)
            #expect(
                await refusal(configuration(server.port, host: "127.0.0.1", security))?.contains("hostname") == true)
            try await OpenSSLProcess.withClient(server.port, OpenSSLProcess.onlyTLS11) { client in
                try await eventually("the broker refuses TLS 1.1", within: .seconds(5)) { client.hasEnded }
                #expect(client.output.contains("alert protocol version"))
            }
            let broker = TestBroker("tls")
            let confirmed = Atomic<Int>(0)
            // More data than one turn processes, in records of every length, then silence: no data may stay in the
            // library.
            let bodies = (0..<3_000).map { "\($0):" + String(repeating: "x", count: $0 * 37 % 70_001) + ";" }
            try await broker.serving(waitingBytesMax: 1 << 30, at: configuration(server.port, security)) { client in
                for body in bodies {
                    try client.send(Array(body.utf8), on: broker.route) { outcome in
                        if outcome == .confirmed { confirmed.add(1, ordering: .relaxed) }
                    }
                }
                try await eventually("every confirmation", within: .seconds(60)) {
                    confirmed.load(ordering: .relaxed) == bodies.count
                }
                try await eventually("every body", within: .seconds(60)) {
                    broker.received.reduce(0) { $0 + $1.utf8.count } == bodies.reduce(0) { $0 + $1.utf8.count }
                }
            }
            #expect(broker.received.joined() == bodies.joined())
        }
    }

    /// Configures the server to require a client certificate.
    private func asksCallers(_ server: SecureServer) throws {
        let lines = "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true"
        let file = server.folder.appending(path: "rabbitmq.conf")
        let text = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .filter { !$0.hasPrefix("ssl_options.verify") && !$0.hasPrefix("ssl_options.fail") }
        try Data((text.joined(separator: "\n") + "\n").utf8).write(to: file)
        try server.append(lines, to: "rabbitmq.conf")
    }

    @Test("SEC1: a broker that requires a client certificate accepts only its authority's, read from the current files")
    func mutual() async throws {
        try await SecureServer.with(.rabbitmq, configure: asksCallers) { server in
            let certificates = server.certificates
            func security(_ name: TestCertificates.Name) -> AMQPSecurity {
                AMQPSecurity(
                    authorityFile: certificates.authorityFile, certificateFile: certificates.certificateFile(name),
                    privateKeyFile: certificates.privateKeyFile(name))
            }
            let none = AMQPSecurity(authorityFile: certificates.authorityFile)
            #expect(await refusal(configuration(server.port, none)) != nil, "no certificate")
            #expect(await refusal(configuration(server.port, security(.foreignClient))) != nil, "another authority's")
            #expect(await refusal(configuration(server.port, security(.client))) == nil)
            // The files are renewed in place and read at each connect; the error names a broken file.
            try certificates.install(.client, over: .foreignClient)
            #expect(await refusal(configuration(server.port, security(.foreignClient))) == nil)
            try Data("-----BEGIN".utf8).write(to: URL(fileURLWithPath: certificates.certificateFile(.client)))
            let broken = await refusal(configuration(server.port, security(.client)))
            #expect(broken?.contains(certificates.certificateFile(.client)) == true)
        }
    }
}
