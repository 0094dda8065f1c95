import ClientServices
import Foundation
import Logging
import MobileSync
import TestSupport

/// An app that keeps a log and sends it when an operator asks for it.
final class DiagnosisApp: Sendable {
    let client: SyncClient
    let log: DiagnosisLog
    let logFolder: URL
    let uploads: DiagnosisUploads
    private let logger = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }

    /// - Parameter port: of the gateway, or of a proxy before it.
    init(_ stack: Stack, device: String, instance: String, port: Int) throws {
        let folder = stack.folder.appending(path: "\(device)-services")
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: port, instanceID: instance, deviceID: device,
                storePath: stack.folder.appending(path: "\(device)-diagnosis.sqlite").path,
                trust: .certificateAuthority(file: stack.certificateAuthority)),
            logger: logger)
        try client.bind(userID: "\(device)-user", sessionID: "session")
        logFolder = folder.appending(path: "logs")
        log = try DiagnosisLog(folder: logFolder)
        uploads = try DiagnosisUploads(
            store: ServiceStore(folder: folder), log: log, uploader: DiagnosisOperations(client: client),
            logger: logger)
    }

    /// Runs the client and the uploads while the body runs.
    func running(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in try await client.run() }
            group.addTask { [client, uploads, logger] in
                try await client.feed(uploads, of: DiagnosisUploads.syncID, logger: logger)
            }
            group.addTask { [uploads] in try await uploads.run() }
            // Reads other Sync IDs, as an app does; the uploads' data goes to the uploads.
            group.addTask { [client] in
                for try await result in client.operationResults() { try await client.confirm(result) }
            }
            try await body()
            group.cancelAll()
        }
    }

    /// The status of a task on the device; nil: unknown task.
    func status(of taskID: String) -> DiagnosisStatus? {
        uploads.tasks.first { $0.command.taskID == taskID }?.status
    }
}
