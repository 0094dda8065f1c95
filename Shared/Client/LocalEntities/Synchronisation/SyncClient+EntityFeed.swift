public import MobileSync

extension SyncClient: EntityFeed {
    public func feed(_ bizType: String, to body: (EntityBatch) async throws -> Void) async throws {
        for try await batch in batches(of: bizType) {
            // A recalled version cannot be undone, because the former version is not stored; the backend sends a newer
            // one.
            let payloads = batch.oplogs.filter { $0.recalls == nil }.map(\.payload)
            if !payloads.isEmpty { try await body(EntityBatch(payloads: payloads, userID: batch.userID)) }
            try await confirm(batch)
        }
    }

    public func feedResults(
        of components: Set<String>, ofUser userID: String?, to body: (SyncOperationResult) async throws -> Void
    ) async throws {
        for try await result in operationResults(of: components, ofUser: userID) {
            try await body(result)
            try await confirm(result)
        }
    }

    public func feedStatus(to body: (EntityConnectionStatus, String) -> Void) async {
        for await event in events {
            if let (status, reason) = EntityConnectionStatus.reported(by: event) { body(status, reason) }
        }
    }
}

extension EntityConnectionStatus {
    /// The connection state in a client's event; nil when the event has none.
    static func reported(by event: SyncEvent) -> (EntityConnectionStatus, String)? {
        switch event {
        case .status(.connected): (.connected, "")
        case .status(.connecting): (.waitingToConnect, "")
        case .status(.notAvailable): (.disconnected, "")
        case .status(.connectFailed): (.disconnected, "the last attempt failed")
        case .closed(_, let reason), .connectionLost(let reason): (.disconnected, reason)
        case .storeFull: (.lowStorage, "the client's store is full of unconfirmed oplogs")
        default: nil
        }
    }
}
