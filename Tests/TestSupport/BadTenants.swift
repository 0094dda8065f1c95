package import Foundation

/// The tenant endpoints of `deploy/bench/bad_tenants.py`: slow, huge, false and broken ones, and correct ones.
package struct BadTenants: Decodable, Sendable {
    /// The number of consecutive ports that the endpoints use.
    package static let ports = 8

    /// URLs under which every session is valid, with plain HTTP and with TLS.
    package let honest: [String]
    /// The URL of an endpoint that answers correctly after 2.5 s.
    package let late: String
    /// URLs of endpoints that never answer correctly that a session is valid. The key names the defect.
    package let bad: [String: String]
    /// The addresses that the validator must be allowed to call, so that only the defect itself prevents a verdict.
    package let allow: String

    private static let script = ProjectFolder.url.appending(path: "deploy/bench/bad_tenants.py")

    /// The program and arguments that run the endpoints.
    ///
    /// - Parameters:
    ///   - forbidden: the target of redirects, a port that must receive no connection.
    ///   - tls: a folder of `certificates.sh`.
    package static func command(port: Int, forbidden: Int, tls: URL) -> [String] {
        ["python3", script.path, "--port", "\(port)", "--forbidden", "\(forbidden)", "--tls", tls.path]
    }

    /// Reads the table of endpoints for these ports.
    package init(port: Int, forbidden: Int) async throws {
        let command = Self.command(port: port, forbidden: forbidden, tls: URL(fileURLWithPath: "/"))
        let outcome = try await Command.run(
            URL(fileURLWithPath: "/usr/bin/env"), command + ["--list"],
            environment: ProcessInfo.processInfo.environment)
        self = try JSONDecoder().decode(Self.self, from: Data(outcome.output.utf8))
    }
}
