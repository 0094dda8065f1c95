import Foundation
public import Logging
public import MobileSync

extension SyncClient {
    /// Gives a client of resources every push of its Sync ID, one at a time, until the task is cancelled; then it
    /// returns. That this client connects shows the other one that there is a network.
    ///
    /// A push that cannot be used is logged and confirmed; one that cannot be stored comes again. A recall is only
    /// confirmed: it has no meaning for copies.
    ///
    /// - Throws: `SyncError.store` when this client's own store cannot be read or written.
    public func feed(_ resources: ResourceClient, logger: Logger) async throws {
        let events = events
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { for await event in events where event == .status(.connected) { resources.networkShown() } }
            group.addTask { try await self.feedPushes(to: resources, logger: logger) }
            defer { group.cancelAll() }
            // The first one ends when it is cancelled.
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
                logger.warning("a push of resources cannot be used", metadata: ["error": "\(error)"])
            } catch {
                logger.error("a push of resources could not be stored", metadata: ["error": "\(error)"])
                continue
            }
            try await confirm(oplog)
        }
    }
}
