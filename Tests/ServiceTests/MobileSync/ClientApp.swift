import Foundation
import Logging
import MobileSync
import Synchronization
import TestSupport

/// A running client, and the oplogs that its app received.
final class ClientApp: Sendable {
    let client: SyncClient
    private let shown = Mutex<[SyncOplog]>([])
    private let news = Mutex<[SyncEvent]>([])

    var oplogs: [SyncOplog] { shown.withLock { $0 } }
    var ids: [Int64] { oplogs.map(\.oplogID) }
    /// The attempt numbers of one oplog, in order.
    func attempts(_ id: Int64) -> [Int] { oplogs.filter { $0.oplogID == id }.map(\.attempt) }
    var events: [SyncEvent] { news.withLock { $0 } }

    /// - Parameters:
    ///   - firstResend: nil to use the gateway's value.
    ///   - change: changes the settings.
    init(
        port: Int, store: URL, user: String? = "u", firstResend: Duration? = nil,
        _ change: (inout SyncClientConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: port, instanceID: "app", deviceID: "d", storePath: store.path,
            trust: .plaintext, firstResend: firstResend)
        change(&configuration)
        client = try SyncClient(
            configuration: configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        if let user { try client.bind(userID: user, sessionID: "s") }
    }

    /// Runs the client and its app while the body runs.
    ///
    /// - Parameter reads: whether the app reads all data. Otherwise the body reads.
    /// - Returns: the reason why `run()` ended by itself, or nil.
    @discardableResult
    func running(reads: Bool = true, _ body: () async throws -> Void) async throws -> SyncError? {
        let events = client.events
        return try await withThrowingTaskGroup(of: SyncError?.self) { group in
            group.addTask { [client] in
                do throws(SyncError) {
                    try await client.run()
                    return nil
                } catch {
                    return error
                }
            }
            group.addTask { [self] in
                for await event in events { news.withLock { $0.append(event) } }
                return nil
            }
            group.addTask { [self] in
                guard reads else { return nil }
                for try await oplog in client.allOplogs() { shown.withLock { $0.append(oplog) } }
                return nil
            }
            try await body()
            group.cancelAll()
            return try await group.reduce(nil) { $0 ?? $1 }
        }
    }

    func shows(_ ids: [Int64]) async throws {
        try await eventually("the app has \(ids), it has \(self.ids)", within: .seconds(30)) { self.ids == ids }
    }
}
