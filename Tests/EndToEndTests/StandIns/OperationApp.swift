import Foundation
import Logging
import MobileSync
import Synchronization
import TestSupport

/// An app that submits device operations: it reads results and oplogs, and confirms both.
final class OperationApp: Sendable {
    let client: SyncClient
    private let confirmsResults: Bool
    private let seen = Mutex<[SyncOperationResult]>([])
    private let shown = Mutex<[SyncOplog]>([])

    /// Results that the app received, in order.
    var results: [SyncOperationResult] { seen.withLock { $0 } }
    /// Oplogs that the app received, in order.
    var oplogs: [SyncOplog] { shown.withLock { $0 } }

    /// - Parameter confirmsResults: false: every start gives the results again.
    init(
        _ stack: Stack, device: String, user: String?, session: String = "session", gateway: Int = 0,
        instance: String = Stack.operationInstance, confirmsResults: Bool = true
    ) throws {
        self.confirmsResults = confirmsResults
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: stack.gateways[gateway], instanceID: instance, deviceID: device,
                storePath: stack.folder.appending(path: "\(device)-operations.sqlite").path,
                trust: .certificateAuthority(file: stack.certificateAuthority)),
            logger: Logger(label: "device") { _ in SwiftLogNoOpLogHandler() })
        if let user { try client.bind(userID: user, sessionID: session) }
    }

    /// Runs the client and its app while the body runs.
    func running(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in try await client.run() }
            group.addTask { [self] in
                for try await result in client.operationResults() {
                    seen.withLock { $0.append(result) }
                    if confirmsResults { try await client.confirm(result) }
                }
            }
            group.addTask { [self] in
                for try await oplog in client.allOplogs() {
                    shown.withLock { $0.append(oplog) }
                    try await client.confirm(oplog)
                }
            }
            try await body()
            group.cancelAll()
        }
    }

    /// Submits operations with these ids on one entity, with the id as the payload of each.
    func submit(_ ids: [String], key: String, name: String = "update", body: String = "{}") throws {
        try client.submit(
            ids.map {
                SyncOperation(id: $0, component: "ORDER", key: key, name: name, body: Array(body.utf8))
            })
    }

    /// Waits until each of these has a result.
    func hasResults(of ids: [String], within limit: Duration = .seconds(30)) async throws {
        try await eventually("\(ids.count) results, there are \(results.count)", within: limit) {
            Set(ids).isSubset(of: self.results.map(\.operationID))
        }
    }

    func result(of id: String) throws -> SyncOperationResult {
        try requireValue(results.last { $0.operationID == id }, "no result of \(id)")
    }
}
