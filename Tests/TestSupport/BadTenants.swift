package import Foundation

/// The table of `deploy/bench/bad_tenants.py`: endpoints that are slow, huge, lying or broken, and honest ones.
package struct BadTenants: Decodable, Sendable {
    /// Ports that they take, from the first one on.
    package static let ports = 8

    /// URLs under which every session is valid: by plain HTTP, and with TLS.
    package let honest: [String]
    /// The URL of one that is honest after two and a half seconds.
    package let late: String
    /// URLs that never say in a sound way that a session is valid, by what is wrong with them.
    package let bad: [String: String]
    /// What the validator must be allowed to call, so that nothing but the fault itself stands in the way.
    package let allow: String

    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "deploy/bench/bad_tenants.py")

    /// The program and arguments that run them.
    ///
    /// - Parameters:
    ///   - forbidden: where redirects lead, a port at which nothing may arrive.
    ///   - tls: a folder of `certificates.sh`.
    package static func command(port: Int, forbidden: Int, tls: URL) -> (executable: URL, arguments: [String]) {
        (
            URL(fileURLWithPath: "/usr/bin/env"),
            ["python3", script.path, "--port", "\(port)", "--forbidden", "\(forbidden)", "--tls", tls.path]
        )
    }

    /// The table for these ports.
    package init(port: Int, forbidden: Int) async throws {
        let command = Self.command(port: port, forbidden: forbidden, tls: URL(fileURLWithPath: "/"))
        let outcome = try await Command.run(
            command.executable, command.arguments + ["--list"], environment: ProcessInfo.processInfo.environment)
        self = try JSONDecoder().decode(Self.self, from: Data(outcome.output.utf8))
    }
}
