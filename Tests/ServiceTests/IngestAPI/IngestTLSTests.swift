import Foundation
import Logging
import NIOCore
import ServiceKit
import TestSupport
import Testing

@testable import IngestAPI
@testable import ServerTLS

@Suite("Ingest: HTTPS", .serialized)
struct IngestTLSTests {
    private static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private static let question = "GET /openapi.json HTTP/1.1\r\nHost: t\r\n"

    /// Serves with the correct certificate while the body runs.
    private func serve(
        asksCallers: Bool = false, limits: ConnectionLimits = ConnectionLimits(),
        _ body:
            @Sendable (_ port: Int, _ certificates: TestCertificates, _ served: ServerCertificates) async throws ->
            Void
    ) async throws {
        try await TestCertificates.with { certificates in
            let served = try ServerCertificates(
                CertificateFiles(
                    certificateFile: certificates.certificateFile(.server),
                    privateKeyFile: certificates.privateKeyFile(.server),
                    clientAuthorityFile: asksCallers ? certificates.authorityFile : ""),
                applicationProtocols: ["http/1.1"], logger: Self.quiet)
            try await IngestServerFixture.serve(limits: limits, certificates: served) { port in
                try await body(port, certificates, served)
            }
        }
    }

    /// The bytes that a caller receives for one request.
    private func answer(_ port: Int, _ arguments: [String]) async throws -> String {
        var output = ""
        try await OpenSSLProcess.withClient(port, arguments) { client in
            try client.send(Self.question + "Connection: close\r\n\r\n")
            try await eventually("the connection ends: \(arguments)", within: .seconds(5)) { client.hasEnded }
            output = client.output
        }
        return output
    }

    /// The bytes that a caller without TLS receives, and whether the connection was closed in time.
    private func received(_ port: Int, _ bytes: String) async throws -> (isClosed: Bool, text: String) {
        try await OwnThread.run {
            let connection = try IngestRawConnection(port: port)
            connection.send(bytes)
            let isClosed = connection.readToEnd()
            return (isClosed, String(decoding: connection.received, as: UTF8.self))
        }
    }

    @Test("SEC1: HTTPS takes TLS 1.2 and 1.3; TLS 1.1 and plaintext are refused")
    func versions() async throws {
        try await serve { port, _, _ in
            for version in ["-tls1_2", "-tls1_3"] {
                #expect(try await answer(port, [version]).contains("HTTP/1.1 200 OK"), "\(version)")
            }
            #expect(try await answer(port, OpenSSLProcess.onlyTLS11).contains("alert protocol version"))
            let (isClosed, plain) = try await received(port, Self.question + "\r\n")
            #expect(isClosed && !plain.contains("HTTP"))
        }
    }

    @Test("SEC1: the certificate is valid for the authority and the name only")
    func identity() async throws {
        try await serve { port, certificates, _ in
            let strict = ["-verify_return_error", "-CAfile"]
            let right = strict + [certificates.authorityFile, "-verify_hostname", "localhost"]
            #expect(try await answer(port, right).contains("HTTP/1.1 200 OK"))
            let other = try await answer(port, strict + [certificates.otherAuthorityFile])
            #expect(other.contains("verify error") && !other.contains("HTTP/1.1"))
            let named = strict + [certificates.authorityFile, "-verify_hostname", "elsewhere.example"]
            #expect(try await answer(port, named).contains("verify error:num=62"))
        }
    }

    @Test("SEC1: with an authority for callers, only those with a certificate of it are served")
    func mutual() async throws {
        try await serve(asksCallers: true) { port, certificates, _ in
            func showing(_ name: TestCertificates.Name) -> [String] {
                ["-cert", certificates.certificateFile(name), "-key", certificates.privateKeyFile(name)]
            }
            for version in ["-tls1_2", "-tls1_3"] {
                let own = try await answer(port, [version] + showing(.client))
                let none = try await answer(port, [version])
                let foreign = try await answer(port, [version] + showing(.foreignClient))
                #expect(own.contains("HTTP/1.1 200 OK"))
                #expect(!none.contains("HTTP/1.1") && !foreign.contains("HTTP/1.1"))
            }
        }
    }

    @Test("SEC1: a connection outlives a change of the certificate; the next one gets the new one")
    func rotation() async throws {
        try await serve { port, certificates, served in
            let isRenewed = ["-verify_return_error", "-CAfile", certificates.authorityFile, "-showcerts"]
            try await OpenSSLProcess.withClient(port, isRenewed) { old in
                try old.send(Self.question + "\r\n")
                try await eventually("an answer", within: .seconds(5)) { old.output.contains("200 OK") }
                #expect(old.output.contains("CN = server"))
                try certificates.install(.renewed, over: .server)
                served.look()
                #expect(try await answer(port, isRenewed).contains("CN = renewed"))
                try old.send(Self.question + "Connection: close\r\n\r\n")
                try await eventually("a second answer", within: .seconds(5)) { old.hasEnded }
                #expect(old.output.components(separatedBy: "200 OK").count == 3)
            }
        }
    }

    @Test("SEC2: a handshake that does not end in time is closed")
    func handshakeDeadline() async throws {
        var limits = ConnectionLimits()
        limits.handshake = .milliseconds(200)
        try await serve(limits: limits) { port, _, _ in
            // No data, and the start of a ClientHello: a record header that announces 512 bytes.
            for beginning in ["", "\u{16}\u{3}\u{1}\u{2}\u{0}"] {
                let (isClosed, answer) = try await received(port, beginning)
                #expect(isClosed && answer.isEmpty)
            }
        }
    }

    @Test("SEC3: the limits of a head's time, of idleness and of a body hold over TLS")
    func limits() async throws {
        var limits = ConnectionLimits()
        (limits.head, limits.idle, limits.linger) = (.seconds(2), .seconds(2), .milliseconds(100))
        try await serve(limits: limits) { port, _, _ in
            try await OpenSSLProcess.withClient(port) { slow in
                try slow.send("GET /openapi.json HTTP/1.1\r\nHost:")
                try await eventually("the slow head is refused", within: .seconds(20)) { slow.hasEnded }
                #expect(slow.output.contains("HTTP/1.1 408"))
            }
            try await OpenSSLProcess.withClient(port) { idle in
                try idle.send(Self.question + "\r\n")
                try await eventually("idleness ends it", within: .seconds(20)) { idle.hasEnded }
                #expect(idle.output.contains("HTTP/1.1 200"))
            }
            try await OpenSSLProcess.withClient(port) { large in
                try large.send(
                    "POST /webapi/sync/single?instanceId=w_app HTTP/1.1\r\nHost: t\r\n"
                        + "Content-Type: application/json\r\nContent-Length: 65537\r\n\r\n")
                try await eventually("the large body is refused", within: .seconds(20)) { large.hasEnded }
                #expect(large.output.contains("HTTP/1.1 413"))
            }
        }
    }
}
