import Foundation
import MobileSync
import TestSupport
import Testing

@Suite("Client library: TLS")
struct SyncClientTLSTests {
    /// Whether a client sends its first frame, which names its instance, to this gateway.
    private func trusts(
        _ certificates: TestCertificates, _ shown: TestCertificates.Name, _ arguments: [String] = [],
        authority: String? = nil, identity: TestCertificates.Name? = nil
    ) async throws -> Bool {
        try await attempt(certificates, shown, arguments, authority: authority, identity: identity).isTrusted
    }

    /// The same, and the client's events until then.
    private func attempt(
        _ certificates: TestCertificates, _ shown: TestCertificates.Name, _ arguments: [String] = [],
        authority: String? = nil, identity: TestCertificates.Name? = nil
    ) async throws -> (isTrusted: Bool, events: [SyncEvent]) {
        let instance = "instance-\(shown.rawValue)"
        var isTrusted = false
        var events: [SyncEvent] = []
        try await OpenSSLProcess.withServer(certificates, shown, arguments + ["-state"]) { port, gateway in
            let store = certificates.folder.appending(path: "\(UUID().uuidString).sqlite")
            let app = try ClientApp(port: port, store: store) { configuration in
                configuration.host = "localhost"
                configuration.instanceID = instance
                configuration.trust = .certificateAuthority(file: authority ?? certificates.authorityFile)
                configuration.identity = identity.map {
                    SyncIdentity(
                        certificateFile: certificates.certificateFile($0),
                        privateKeyFile: certificates.privateKeyFile($0))
                }
            }
            try await app.running {
                // The client retries without end. Its second attempt shows that the first one failed.
                try await eventually("a frame, or a second attempt", within: .seconds(20)) {
                    gateway.output.contains(instance)
                        || gateway.output.components(separatedBy: "before SSL initialization").count > 3
                }
                isTrusted = gateway.output.contains(instance)
            }
            events = app.events
        }
        return (isTrusted, events)
    }

    @Test(
        "SEC1, K7: a refused certificate is an event of its own, which names the expected authority and the gateway",
        arguments: [TestCertificates.Name.foreign, .expired, .misnamed])
    func refusal(shown: TestCertificates.Name) async throws {
        try await TestCertificates.with { (certificates) async throws in
            let events = try await attempt(certificates, shown).events
            let errors = events.compactMap { if case .certificateRefused(let error) = $0 { error } else { nil } }
            let error = try requireValue(errors.first, "no refused certificate in \(events)")
            #expect(error.code == .certificate)
            #expect(error.message.contains("the gateway localhost:"))
            #expect(error.message.contains("\"MSS test ca\" (\(certificates.authorityFile))"))
            #expect(error.message.contains("does not name localhost") == (shown == .misnamed))
        }
    }

    @Test("SEC1: a device sends nothing to a gateway with a foreign, misnamed or expired certificate")
    func certificates() async throws {
        try await TestCertificates.with { (certificates) async throws in
            #expect(try await trusts(certificates, .server))
            #expect(try await !trusts(certificates, .foreign))
            #expect(try await trusts(certificates, .foreign, authority: certificates.otherAuthorityFile))
            #expect(try await !trusts(certificates, .misnamed))
            #expect(try await !trusts(certificates, .expired))
        }
    }

    @Test("SEC1: a device sends nothing over TLS 1.1") func versions() async throws {
        try await TestCertificates.with { (certificates) async throws in
            #expect(try await trusts(certificates, .server, ["-tls1_2"]))
            #expect(try await !trusts(certificates, .server, OpenSSLProcess.onlyTLS11))
        }
    }

    @Test("SEC1: a device shows its certificate to a gateway that asks for one") func identity() async throws {
        try await TestCertificates.with { (certificates) async throws in
            let asking = ["-Verify", "1", "-verify_return_error", "-CAfile", certificates.authorityFile, "-tls1_2"]
            #expect(try await trusts(certificates, .server, asking, identity: .client))
            #expect(try await !trusts(certificates, .server, asking))
            #expect(try await !trusts(certificates, .server, asking, identity: .foreignClient))
        }
    }
}
