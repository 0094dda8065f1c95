import ChildProcesses
import Foundation
import Glibc

/// `openssl s_client` or `s_server` as the peer of a TLS connection. It offers any version and cipher, also old or
/// wrong ones.
package final class OpenSSLProcess: Sendable {
    /// Arguments to offer only TLS 1.1, which the default security level of the library forbids.
    package static let onlyTLS11 = ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]

    private let process: ChildProcess
    private let log: URL

    private init(_ arguments: [String]) throws {
        log = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "openssl-\(UUID().uuidString)")
        // A write after the end of the process must not end the tests.
        Glibc.signal(SIGPIPE, SIG_IGN)
        process = try ChildProcess(["openssl"] + arguments, takesInput: true, output: .file(log))
    }

    /// Runs the body with a client that connects to a port of localhost.
    package static func withClient(
        _ port: Int, _ arguments: [String] = [], _ body: (OpenSSLProcess) async throws -> Void
    ) async throws {
        let client = try OpenSSLProcess(["s_client", "-connect", "127.0.0.1:\(port)", "-quiet"] + arguments)
        defer { client.stop() }
        try await body(client)
    }

    /// Runs the body with a server that presents a certificate, on a free port. Its output contains the received data.
    package static func withServer(
        _ certificates: TestCertificates, _ name: TestCertificates.Name, _ arguments: [String] = [],
        _ body: (_ port: Int, _ server: OpenSSLProcess) async throws -> Void
    ) async throws {
        let port = try FreePorts.find(1)[0]
        let server = try OpenSSLProcess(
            [
                "s_server", "-accept", "\(port)", "-cert", certificates.certificateFile(name), "-key",
                certificates.privateKeyFile(name),
            ] + arguments)
        defer { server.stop() }
        try await eventually("openssl listens", within: .seconds(10)) { server.output.contains("ACCEPT") }
        try await body(port, server)
    }

    /// The output so far: received data and messages.
    package var output: String {
        // Received data can be binary.
        (try? Data(contentsOf: log)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Whether the process has ended. A client ends with its connection.
    package var hasEnded: Bool { process.status != nil }

    /// Sends text over the connection as soon as it is established.
    package func send(_ text: String) throws { try process.write(Data(text.utf8)) }

    private func stop() {
        process.signal(SIGTERM)
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: log)
    }
}
