import Foundation
import Logging
import MobileSync
import Synchronization
import TestSupport

/// A device with its own store, which records all data that its app received.
final class TestDevice: Sendable {
    let user: String
    let device: String
    private let session: String
    let instance: String
    private let firstResend: Duration
    private let confirms: Bool
    private let stack: Stack
    private let operatingSystem: String
    private let appVersion: String
    private let pushToken: SyncPushToken?
    private let storePath: String
    private let settings: @Sendable (inout SyncClientConfiguration) -> Void
    private let shown = Mutex<[SyncOplog]>([])
    private let receivedEvents = Mutex<[SyncEvent]>([])

    /// - Parameters:
    ///   - install: another value on the same device is a re-installed app, with an empty store.
    ///   - firstResend: the first wait of the resend ladder; the usual ten seconds suit a busy machine.
    ///   - confirms: whether the app confirms received oplogs.
    ///   - pushToken: the token for wake-up pushes.
    ///   - settings: further settings of the client.
    init(
        _ stack: Stack, user: String, device: String, session: String = "session", operatingSystem: String = "iOS",
        appVersion: String = "1.0.0", install: Int = 0, instance: String = Stack.instance,
        firstResend: Duration = .seconds(10), confirms: Bool = true, pushToken: SyncPushToken? = nil,
        settings: @escaping @Sendable (inout SyncClientConfiguration) -> Void = { _ in }
    ) {
        self.user = user
        self.device = device
        self.session = session
        self.instance = instance
        self.firstResend = firstResend
        self.confirms = confirms
        self.settings = settings
        self.stack = stack
        self.operatingSystem = operatingSystem
        self.appVersion = appVersion
        self.pushToken = pushToken
        storePath = stack.folder.appending(path: "\(device)-\(install).sqlite").path
    }

    /// The oplogs that the app received, in order.
    var received: [SyncOplog] { shown.withLock { $0 } }

    /// The payloads of one Sync ID that the app received, in order.
    func payloads(_ bizType: String) -> [String] { received.filter { $0.bizType == bizType }.compactMap(\.text) }

    /// The client's events other than data.
    var events: [SyncEvent] { receivedEvents.withLock { $0 } }

    /// Connects to a gateway and stays connected until cancelled.
    func stay(gateway: Int = 0) async throws {
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: stack.gateways[gateway % stack.gateways.count], instanceID: instance,
            deviceID: device, storePath: storePath, trust: .certificateAuthority(file: stack.certificateAuthority),
            operatingSystemName: operatingSystem, appVersion: appVersion, firstResend: firstResend)
        settings(&configuration)
        let client = try SyncClient(
            configuration: configuration,
            logger: Logger(label: "device") { _ in SwiftLogNoOpLogHandler() })
        try client.bind(userID: user, sessionID: session)
        if let pushToken { try await client.setPushToken(pushToken) }
        let events = client.events
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            group.addTask { [self] in
                for await event in events { receivedEvents.withLock { $0.append(event) } }
            }
            group.addTask { [self] in
                for try await oplog in client.allOplogs() {
                    shown.withLock { $0.append(oplog) }
                    if confirms { try await client.confirm(oplog) }
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Connects, waits until the whole backlog has arrived, runs the body, and disconnects.
    func connected(gateway: Int = 0, _ body: () async throws -> Void = {}) async throws {
        let before = events.count
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.stay(gateway: gateway) }
            try await eventually("\(device) is caught up", within: .seconds(20)) {
                events[before...].contains(.caughtUp(userID: user))
            }
            try await body()
            group.cancelAll()
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
