import Foundation
import Logging
import MobileSync
import Synchronization
import TestSupport

/// An app on a device of the running system that confirms all received oplogs; the test controls its client.
final class SDKApp: Sendable {
    let client: SyncClient
    private let types: [String?]
    private let shown = Mutex<[SyncOplog]>([])
    private let receivedEvents = Mutex<[SyncEvent]>([])

    /// The oplogs that the app received, in order.
    var oplogs: [SyncOplog] { shown.withLock { $0 } }
    /// The client's events other than data.
    var events: [SyncEvent] { receivedEvents.withLock { $0 } }

    /// - Parameter reads: the Sync IDs that the app reads from the start; nil: all of them.
    init(_ stack: Stack, device: String, reads types: [String?] = [nil]) throws {
        self.types = types
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: stack.gateways[0], instanceID: Stack.instance, deviceID: device,
                storePath: stack.folder.appending(path: "\(device)-app.sqlite").path,
                trust: .certificateAuthority(file: stack.certificateAuthority), operatingSystemName: "iOS",
                appVersion: "1.0.0", firstResend: .seconds(10)),
            logger: Logger(label: "device") { _ in SwiftLogNoOpLogHandler() })
    }

    /// Runs the client and its app while the body runs.
    func running(_ body: () async throws -> Void) async throws {
        let events = client.events
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in try await client.run() }
            group.addTask { [self] in
                for await event in events { receivedEvents.withLock { $0.append(event) } }
            }
            for type in types { group.addTask { [self] in try await readOplogs(type) } }
            try await body()
            group.cancelAll()
        }
    }

    /// Reads one more Sync ID while the body runs.
    func reading(_ bizType: String, _ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [self] in try await readOplogs(bizType) }
            try await body()
            group.cancelAll()
        }
    }

    private func readOplogs(_ bizType: String?) async throws {
        let oplogs = bizType.map { client.oplogs(of: $0) } ?? client.allOplogs()
        for try await oplog in oplogs {
            // Global pushes of other tests reach every device.
            if !oplog.bizType.hasPrefix("GLOBAL") { shown.withLock { $0.append(oplog) } }
            try await client.confirm(oplog)
        }
    }

    /// Waits until the app has received exactly these payloads.
    func shows(_ payloads: [String]) async throws {
        try await eventually("the app has \(payloads.count) oplogs, it has \(oplogs.count)", within: .seconds(20)) {
            self.oplogs.compactMap(\.text) == payloads
        }
    }
}
