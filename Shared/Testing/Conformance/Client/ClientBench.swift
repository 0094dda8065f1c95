import Foundation
import MobileSync

/// The common parts of all cases for a client program.
struct ClientBench: Sendable {
    /// The program and its arguments, with placeholders.
    let command: [String]
    /// Additional arguments with which the program does not confirm. The value is nil if the program has none.
    let noConfirmArguments: [String]?
    /// Port of the scripted gateways. 0 for free ports.
    let port: Int
    /// Folder of the run, removed afterwards.
    let folder: URL
    let authority: TestAuthority
    /// The key with which the program signs. The value is nil if it does not sign.
    let appKey: SyncAppKey?

    /// Names of the placeholders.
    static let placeholders = [
        "host", "port", "ca", "instance", "device", "user", "session", "store", "app-version",
    ]

    /// Creates the folder and the certificates.
    init(command: [String], noConfirmArguments: [String]?, port: Int, appKey: SyncAppKey? = nil) async throws {
        self.appKey = appKey
        self.command = command
        self.noConfirmArguments = noConfirmArguments
        self.port = port
        folder = URL(filePath: NSTemporaryDirectory()).appending(path: "mss-conformance-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        authority = try await TestAuthority(in: folder)
    }

    /// The command with all placeholders replaced.
    static func filled(_ command: [String], _ values: [String: String]) -> [String] {
        command.map { part in
            placeholders.reduce(part) { $0.replacing("{\($1)}", with: values[$1] ?? "") }
        }
    }
}
