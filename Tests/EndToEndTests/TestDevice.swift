import Foundation
import Logging
import MobileSync
import Synchronization

/// A device with a store of its own, which writes down everything that its app was given.
final class TestDevice: Sendable {
    let user: String
    let device: String
    private let session: String
    private let stack: Stack
    private let storePath: String
    private let shown = Mutex<[SyncOplog]>([])
    private let news = Mutex<[SyncEvent]>([])

    init(_ stack: Stack, user: String, device: String, session: String = "session") {
        self.user = user
        self.device = device
        self.session = session
        self.stack = stack
        storePath = stack.folder.appending(path: "\(device).sqlite").path
    }

    /// What the app was given so far, in order.
    var received: [SyncOplog] { shown.withLock { $0 } }

    /// What the client told beside data.
    var events: [SyncEvent] { news.withLock { $0 } }

    /// Connects to a gateway and stays, until cancelled.
    func stay(gateway: Int = 0) async throws {
        let client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: stack.gateways[gateway % stack.gateways.count], instanceID: Stack.instance,
                deviceID: device, storePath: storePath,
                trust: .certificateAuthority(file: stack.certificateAuthority), operatingSystemName: "iOS",
                appVersion: "1.0.0"),
            logger: Logger(label: "device") { _ in SwiftLogNoOpLogHandler() })
        try client.bind(userID: user, sessionID: session)
        let events = client.events
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            group.addTask { [self] in
                for await event in events { news.withLock { $0.append(event) } }
            }
            group.addTask { [self] in
                for try await oplog in client.allOplogs() {
                    shown.withLock { $0.append(oplog) }
                    try await client.confirm(oplog)
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Connects for a while.
    func visit(gateway: Int, for duration: Duration) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.stay(gateway: gateway) }
            group.addTask { try await ContinuousClock().sleep(for: duration) }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}
