import Foundation
public import Logging
public import MobileSync

extension SyncClient {
    /// Passes every push of the client's Sync ID to a `ResourceClient`, one at a time, until the task is cancelled,
    /// then returns. When this client connects, the resource client ends its back-off.
    ///
    /// A push with an invalid payload is logged and confirmed. A push that cannot be stored is not confirmed and
    /// arrives again. A recall is only confirmed: it has no meaning for copies.
    ///
    /// - Throws: `SyncError.store` when this client's local store cannot be read or written.
    public func feed(_ resources: ResourceClient, logger: Logger) async throws {
        let events = events
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in events where event == .status(.connected) { resources.networkConfirmed() }
            }
            group.addTask { try await self.feedPushes(to: resources, logger: logger) }
            defer { group.cancelAll() }
            // The status task ends only when it is cancelled.
            for try await _ in group where Task.isCancelled { return }
        }
    }

    private func feedPushes(to resources: ResourceClient, logger: Logger) async throws {
        for try await oplog in oplogs(of: resources.configuration.pushSyncID) {
            do {
                if oplog.recalls == nil {
                    try await resources.take(
                        push: oplog.payload, userID: oplog.userID, pushedAt: Date(milliseconds: oplog.createdAt))
                }
            } catch  where error.code == .push {
                logger.warning("a push about resources is invalid; it is confirmed", metadata: ["error": "\(error)"])
            } catch {
                logger.error(
                    "a push about resources could not be stored; it arrives again", metadata: ["error": "\(error)"])
                continue
            }
            try await confirm(oplog)
        }
    }
}
