import Foundation
import Logging
import MobileSync
import Synchronization
import TestSupport

/// A device whose connection, user and installation the model decides, and the data that its app received.
final class ModelDevice: Sendable {
    private struct State {
        var install = 0
        var client: SyncClient?
        var leave: AsyncStream<Void>.Continuation?
        var shown: [RuleBook.Channel: [String]] = [:]
        var events: [SyncEvent] = []
    }

    let name: String
    private let system: String
    private let stack: Stack
    private let state = Mutex(State())

    init(_ stack: Stack, name: String, system: String) {
        self.stack = stack
        self.name = name
        self.system = system
    }

    /// The keys that the app of this installation received: by channel, in order.
    var shown: [RuleBook.Channel: [String]] { state.withLock { $0.shown } }

    /// Connects and stays connected until `leave`.
    func stay(gateway: Int, user: String?) async throws {
        let (untilLeave, leave) = AsyncStream.makeStream(of: Void.self)
        let install = state.withLock { state in
            state.leave = leave
            return state.install
        }
        let client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: stack.gateways[gateway], instanceID: Stack.instance, deviceID: name,
                storePath: stack.folder.appending(path: "\(name)-\(install).sqlite").path,
                trust: .certificateAuthority(file: stack.certificateAuthority), operatingSystemName: system,
                appVersion: "1.0", firstResend: .seconds(10)),
            logger: Logger(label: "device") { _ in SwiftLogNoOpLogHandler() })
        if let user { try client.bind(userID: user, sessionID: "s") }
        let events = client.events
        state.withLock { $0.client = client }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            group.addTask { [self] in
                for await event in events { state.withLock { $0.events.append(event) } }
            }
            group.addTask { [self] in
                for try await oplog in client.allOplogs() {
                    let channel = RuleBook.Channel(bizType: oplog.bizType, target: oplog.userID ?? name)
                    state.withLock { $0.shown[channel, default: []].append(oplog.text ?? "") }
                    try await client.confirm(oplog)
                }
            }
            group.addTask { for await _ in untilLeave {} }
            defer { group.cancelAll() }
            try await group.next()
        }
        state.withLock { $0.client = nil }
    }

    /// Disconnects.
    func leave() { state.withLock { $0.leave }?.finish() }

    /// Forgets the events of the last connection.
    func forget() { state.withLock { $0.events = [] } }

    /// Binds another user on the open connection.
    func bind(_ user: String?) throws {
        let client = state.withLock { state in
            state.events = []
            return state.client
        }
        if let user { try client?.bind(userID: user, sessionID: "s") } else { client?.unbind() }
    }

    /// Re-installs the app before the next connection.
    func reinstall() {
        state.withLock { state in
            state.install += 1
            state.shown = [:]
        }
    }

    /// Whether the whole backlog of this user has arrived since the connect or the bind.
    func isCaughtUp(_ user: String?) -> Bool { state.withLock { $0.events.contains(.caughtUp(userID: user)) } }

    var isAway: Bool { state.withLock { $0.client == nil } }
}
