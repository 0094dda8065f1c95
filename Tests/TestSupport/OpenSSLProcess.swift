import Foundation
import Glibc

/// `openssl s_client` or `s_server` as the other side of a TLS connection: what it is told to offer, it offers, however
/// old or wrong.
package final class OpenSSLProcess: Sendable {
    /// Arguments that make it offer TLS 1.1 alone; the libraries' own level forbids that version.
    package static let onlyTLS11 = ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]

    private let process: Process
    private let input: FileHandle
    private let log: URL

    private init(_ arguments: [String]) throws {
        log = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "openssl-\(UUID().uuidString)")
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        let (pipe, output) = (Pipe(), try FileHandle(forWritingTo: log))
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.standardInput = pipe
        process.standardOutput = output
        process.standardError = output
        input = pipe.fileHandleForWriting
        // What is sent after its end is lost, no reason to end the tests.
        Glibc.signal(SIGPIPE, SIG_IGN)
        try process.runWithOpenSignals()
    }

    /// Runs the body with a client that has begun to connect to localhost's port.
    package static func withClient(
        _ port: Int, _ arguments: [String] = [], _ body: (OpenSSLProcess) async throws -> Void
    ) async throws {
        let client = try OpenSSLProcess(["s_client", "-connect", "127.0.0.1:\(port)", "-quiet"] + arguments)
        defer { client.stop() }
        try await body(client)
    }

    /// Runs the body with a server that shows a certificate, on a port of its own; its output has what it is sent.
    package static func withServer(
        _ certificates: TestCertificates, _ name: TestCertificates.Name, _ arguments: [String] = [],
        _ body: (_ port: Int, _ server: OpenSSLProcess) async throws -> Void
    ) async throws {
        let port = try FreePorts.take(1)[0]
        let server = try OpenSSLProcess(
            [
                "s_server", "-accept", "\(port)", "-cert", certificates.certificateFile(name), "-key",
                certificates.privateKeyFile(name),
            ] + arguments)
        defer { server.stop() }
        try await eventually("openssl listens", within: .seconds(10)) { server.output.contains("ACCEPT") }
        try await body(port, server)
    }

    /// What it said: of a client what came over TLS, and its complaints.
    package var output: String {
        // Not all that is sent is text.
        (try? Data(contentsOf: log)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Whether it is over: of a client, that the connection is.
    package var hasEnded: Bool { !process.isRunning }

    /// Sends text over the connection, once it stands.
    package func send(_ text: String) throws { try input.write(contentsOf: Data(text.utf8)) }

    private func stop() {
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: log)
    }
}
