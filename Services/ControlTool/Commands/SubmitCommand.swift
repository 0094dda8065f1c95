import ArgumentParser
import Foundation
import MobileSync
import ToolSupport

/// `mssctl submit`: a device in a terminal that submits one operation and prints its result.
struct SubmitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit", abstract: "Submits one operation as a device, and prints its result.",
        discussion: "The exit code is 1 if the tenant refused the operation, and 2 if no result came in time.")

    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The device id.")
    var device: String
    @Option(help: "The user of the operation.")
    var user: String
    @Option(help: "Session id of the user.")
    var session = "SESSION_DEMO"
    @Option(help: "Component of the entity.")
    var component: String
    @Option(help: "Key of the entity.")
    var key: String
    @Option(help: "Name of the operation: create, update, delete, or a name of the app.")
    var operation = "update"
    @Option(help: "Body of the operation: JSON or any text.")
    var body = ""
    @Option(help: "Id of the operation, which is executed once; random when absent.")
    var id: String?
    @Option(help: "Address of the gateway.")
    var host = "127.0.0.1"
    @Option(help: "Port of the gateway.")
    var port = 7443
    @Option(help: "PEM file with the authority of the gateway's certificate.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "Local store; .local/devices/<instance>/<device>/store.sqlite when absent.")
    var store: String?
    @Option(help: "Time limit for the result, in seconds.")
    var seconds = 60
    @OptionGroup var appKey: AppKeyOptions

    func run() async throws {
        let path = store ?? ListenCommand.defaultStore(instance: instance, device: device)
        try FileManager.default.createDirectory(
            at: URL(filePath: path).deletingLastPathComponent(), withIntermediateDirectories: true)
        let configuration = SyncClientConfiguration(
            host: host, port: port, instanceID: instance, deviceID: device, storePath: path,
            trust: .certificateAuthority(file: ca), appKey: try appKey.key())
        let client = try SyncClient(configuration: configuration, logger: ToolSettings.logger())
        try client.bind(userID: user, sessionID: session)
        let sent = SyncOperation(
            id: id ?? SyncOperation.makeID(), component: component, key: key, name: operation, body: Array(body.utf8))
        try client.submit([sent])
        guard let result = try await Self.result(of: sent.id, from: client, within: .seconds(seconds)) else {
            FileHandle.standardError.write(
                Data("no result of \(sent.id) yet; the operation is stored and its result comes later\n".utf8))
            throw ExitCode(2)
        }
        print(Self.line(of: result))
        if !result.isAccepted { throw ExitCode.failure }
    }

    /// The result. The value is nil if it did not come in time.
    private static func result(
        of id: String, from client: SyncClient, within limit: Duration
    ) async throws -> SyncOperationResult? {
        try await withThrowingTaskGroup(of: SyncOperationResult?.self) { group in
            group.addTask {
                try await client.run()
                return nil
            }
            group.addTask {
                for try await result in client.operationResults() {
                    try await client.confirm(result)
                    if result.operationID == id { return result }
                }
                return nil
            }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    private static func line(of result: SyncOperationResult) -> String {
        let word = result.isAccepted ? "accepted" : "refused"
        let message = result.message.isEmpty ? "" : " \(TerminalText.of(result.message))"
        let state = result.imported.map { "\t\(TerminalText.of(String(decoding: $0, as: UTF8.self)))" } ?? ""
        return "\(result.operationID)\t\(word)\tcode \(result.code)\(message)\(state)"
    }
}
