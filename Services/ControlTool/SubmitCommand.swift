import ArgumentParser
import Foundation
import MobileSync

/// `mssctl submit`: a device in a terminal that sends one operation up and prints what became of it.
struct SubmitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "submit", abstract: "Sends one operation as a device, and prints its result.",
        discussion: "Ends with 1 when the tenant has not accepted it, and with 2 when no result came in time.")

    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The device id.")
    var device: String
    @Option(help: "The user whose operation it is.")
    var user: String
    @Option(help: "The user's session.")
    var session = "SESSION_DEMO"
    @Option(help: "What kind of thing it is done to.")
    var component: String
    @Option(help: "Which thing.")
    var key: String
    @Option(help: "create, update, delete, or the app's own.")
    var operation = "update"
    @Option(help: "What goes with it: JSON, or any text.")
    var body = ""
    @Option(help: "Its id; a new one by default. An operation of an id is done once.")
    var id: String?
    @Option(help: "The gateway's address.")
    var host = "127.0.0.1"
    @Option(help: "The gateway's port.")
    var port = 7443
    @Option(help: "The authority that signed the gateway's certificate, as a PEM file.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "The local store; .local/devices/<instance>/<device>/store.sqlite by default.")
    var store: String?
    @Option(help: "How long the result is waited for, in seconds.")
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
            FileHandle.standardError.write(Data("no result of \(sent.id) yet; it is kept and comes later\n".utf8))
            throw ExitCode(2)
        }
        print(Self.line(of: result))
        if !result.isAccepted { throw ExitCode.failure }
    }

    /// Nil: none came in time.
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
        let message = result.message.isEmpty ? "" : " \(OneLine.of(result.message))"
        let state = result.imported.map { "\t\(OneLine.of(String(decoding: $0, as: UTF8.self)))" } ?? ""
        return "\(result.operationID)\t\(word)\tcode \(result.code)\(message)\(state)"
    }
}
