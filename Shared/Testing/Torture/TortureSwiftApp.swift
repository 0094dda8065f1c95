import Foundation
import Logging
import MobileSync
import SyncModel

/// An app with the Swift client, in this process. At its end its tasks are cancelled.
final class TortureSwiftApp: TortureApp {
    private static let silent = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }

    private let client: SyncClient
    private let events: AsyncStream<SyncEvent>
    private let ending = AsyncStream<Void>.makeStream()

    init(_ start: TortureAppStart) throws {
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: start.port, instanceID: start.instance, deviceID: start.device,
            storePath: start.store.path, trust: .certificateAuthority(file: start.certificateAuthority),
            operatingSystemName: "iOS", appVersion: start.version)
        if start.clockOffset != .zero {
            let offset = Int64(start.clockOffset / .milliseconds(1))
            configuration.clock = { WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000) + offset) }
        }
        client = try SyncClient(configuration: configuration, logger: Self.silent)
        events = client.events
    }

    func run(on phone: TortureDevice) async throws {
        let isAskedToEnd = try await withThrowingTaskGroup(of: Bool.self) { [client, events, ending] group in
            group.addTask {
                try await client.run()
                return false
            }
            group.addTask {
                for await event in events { try phone.handle(TortureAppEvent(event)) }
                return false
            }
            group.addTask {
                for try await oplog in client.allOplogs() {
                    let shown = TortureOplog(oplog)
                    guard phone.receive(shown) else { continue }
                    try await client.confirm(oplog)
                    phone.recordConfirmation(of: shown)
                }
                return false
            }
            group.addTask {
                for try await result in client.operationResults() {
                    let shown = TortureResult(result)
                    guard phone.receive(shown) else { continue }
                    try await client.confirm(result)
                    phone.recordConfirmation(of: shown)
                }
                return false
            }
            group.addTask {
                for await _ in ending.stream {}
                return true
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
        guard isAskedToEnd || Task.isCancelled else { throw TortureFailure("its client ended by itself") }
    }

    func end() { ending.continuation.finish() }

    func bind(user: String, session: String) throws { try client.bind(userID: user, sessionID: session) }

    func submit(_ operations: [SyncOperation]) throws { try client.submit(operations) }
}

extension TortureAppEvent {
    fileprivate init(_ event: SyncEvent) {
        switch event {
        case .caughtUp(let user): self = .caughtUp(user: user)
        case .closed, .connectionLost, .status(.notAvailable), .status(.connecting), .status(.connectFailed):
            self = .disconnected("\(event)")
        case .sessionInvalid: self = .sessionInvalid
        default: self = .other("\(event)")
        }
    }
}

extension TortureOplog {
    fileprivate init(_ oplog: SyncOplog) {
        self.init(
            bizType: oplog.bizType, oplogId: oplog.oplogID, userId: oplog.userID, thirdMsgId: oplog.thirdMessageID,
            attempt: oplog.attempt, recalls: oplog.recalls, text: oplog.text)
    }
}

extension TortureResult {
    fileprivate init(_ result: SyncOperationResult) {
        self.init(operationId: result.operationID, isAccepted: result.isAccepted, code: result.code)
    }
}
