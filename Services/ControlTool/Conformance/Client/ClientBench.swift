import Foundation
import MobileSync

/// What all cases against a client program share.
struct ClientBench: Sendable {
    /// The program and its arguments, with placeholders.
    let command: [String]
    /// Arguments that make the program not confirm what it prints; nil when it has none.
    let noConfirmArguments: [String]?
    /// Where scripted gateways listen; 0 takes free ports.
    let port: Int
    /// Removed after the run.
    let folder: URL
    let authority: TestAuthority
    /// The key that the program signs by; nil: it does not sign.
    let appKey: SyncAppKey?

    /// The names between braces that a command may have.
    static let placeholders = [
        "host", "port", "ca", "instance", "device", "user", "session", "store", "app-version",
    ]

    /// Makes folder and certificates.
    init(command: [String], noConfirmArguments: [String]?, port: Int, appKey: SyncAppKey? = nil) async throws {
        self.appKey = appKey
        self.command = command
        self.noConfirmArguments = noConfirmArguments
        self.port = port
        folder = URL(filePath: NSTemporaryDirectory()).appending(path: "mss-conformance-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        authority = try await TestAuthority(in: folder)
    }

    /// The command with every `{name}` replaced.
    static func filled(_ command: [String], _ values: [String: String]) -> [String] {
        command.map { part in
            placeholders.reduce(part) { $0.replacing("{\($1)}", with: values[$1] ?? "") }
        }
    }
}
