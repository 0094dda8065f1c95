package import ChildProcesses
package import Foundation
import Glibc

/// A RabbitMQ or PostgreSQL server of one test that accepts only TLS. The scripts of the local stack create it. The
/// user of PostgreSQL is mss, with a password.
package struct SecureServer: Sendable {
    package enum Kind: String, Sendable {
        case rabbitmq
        case postgres
    }

    /// The password of PostgreSQL. RabbitMQ has its built-in user.
    package static let password = "of-this-test"
    /// Limits the number of servers that run at a time. Each keeps a processor busy while it starts.
    package static let turnstile = Turnstile(places: 2)

    package let port: Int
    package let certificates: TestCertificates
    /// The folder of the server, with its configuration.
    package let folder: URL
    private let kind: Kind

    /// Runs the body with a server that presents the correct certificate.
    ///
    /// - Parameter configure: changes the configuration before the start.
    package static func with(
        _ kind: Kind, configure: (SecureServer) throws -> Void = { _ in }, _ body: (SecureServer) async throws -> Void
    ) async throws {
        try await turnstile.pass { try await serve(kind, configure: configure, body) }
    }

    private static func serve(
        _ kind: Kind, configure: (SecureServer) throws -> Void, _ body: (SecureServer) async throws -> Void
    ) async throws {
        try await TestCertificates.with { certificates in
            // RabbitMQ also uses the next two ports.
            let server = SecureServer(
                port: try FreePorts.find(3)[0], certificates: certificates,
                folder: certificates.folder.appending(path: kind.rawValue), kind: kind)
            let passwordFile = certificates.folder.appending(path: "password")
            try password.write(to: passwordFile, atomically: true, encoding: .utf8)
            let credentials = kind == .postgres ? [passwordFile.path] : []
            try await server.script(["init", server.folder.path, "\(server.port)"] + credentials)
            try await server.show(.server)
            try configure(server)
            let process = try ChildProcess([server.scriptFile.path, "run", server.folder.path], output: .discarded)
            do {
                try await eventually("\(kind.rawValue) answers", within: .seconds(60)) {
                    (try? await server.script(["ready", server.folder.path])) != nil
                }
                try await body(server)
            } catch {
                try await end(kind, process)
                throw error
            }
            try await end(kind, process)
        }
    }

    /// The variables for the scripts that run servers. SERVERS_ROOT is the folder with the servers of another suite of
    /// Debian (deploy/scripts/servers-root.sh).
    package static var environment: [String: String] {
        ProcessInfo.processInfo.environment.filter { ["PATH", "SERVERS_ROOT"].contains($0.key) }
    }

    /// Ends the server without blocking a thread that other tests need. RabbitMQ needs seconds to end by itself, and no
    /// test needs its data.
    package static func end(_ kind: Kind, _ process: ChildProcess) async throws {
        process.signal(kind == .rabbitmq ? SIGKILL : SIGTERM)
        try await eventually("the server ends", within: .seconds(20)) { process.status != nil }
    }

    /// Replaces the server's certificate. PostgreSQL presents it to new connections a moment later, RabbitMQ after a
    /// start.
    package func show(_ name: TestCertificates.Name) async throws {
        for ending in ["pem", "key"] {
            let data = try Data(contentsOf: certificates.folder.appending(path: "\(name.rawValue).\(ending)"))
            try data.write(to: certificates.folder.appending(path: "\(kind.rawValue).\(ending)"))
        }
        try await script(["tls", folder.path, certificates.folder.path])
    }

    /// Appends lines to a file of the server.
    package func append(_ lines: String, to file: String) throws {
        let url = folder.appending(path: file)
        try Data((try String(contentsOf: url, encoding: .utf8) + lines + "\n").utf8).write(to: url)
    }

    private var scriptFile: URL {
        ProjectFolder.url.appending(path: "deploy/scripts/\(kind.rawValue).sh")
    }

    private func script(_ arguments: [String]) async throws {
        let outcome = try await Command.run(scriptFile, arguments, environment: Self.environment)
        guard outcome.status == 0 else { throw Failure("\(kind.rawValue).sh \(arguments): \(outcome.output)") }
    }
}
