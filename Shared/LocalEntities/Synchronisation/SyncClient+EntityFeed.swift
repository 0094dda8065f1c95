public import MobileSync

extension SyncClient: EntityFeed {
    public func feed(_ bizType: String, to take: (EntityBatch) async throws -> Void) async throws {
        for try await batch in batches(of: bizType) {
            // What is recalled cannot be undone, as the version before it is not kept; the backend sends a newer one.
            let payloads = batch.oplogs.filter { $0.recalls == nil }.map(\.payload)
            if !payloads.isEmpty { try await take(EntityBatch(payloads: payloads, userID: batch.userID)) }
            try await confirm(batch)
        }
    }

    public func feedResults(
        of components: Set<String>, ofUser userID: String?, to take: (SyncOperationResult) async throws -> Void
    ) async throws {
        for try await result in operationResults(of: components, ofUser: userID) {
            try await take(result)
            try await confirm(result)
        }
    }

    public func feedStatus(to tell: (EntityConnectionStatus, String) -> Void) async {
        for await event in events {
            if let (status, reason) = EntityConnectionStatus.told(by: event) { tell(status, reason) }
        }
    }
}

extension EntityConnectionStatus {
    /// What a client's event says of the connection; nil: nothing.
    static func told(by event: SyncEvent) -> (EntityConnectionStatus, String)? {
        switch event {
        case .status(.connected): (.connected, "")
        case .status(.connecting): (.waitingToConnect, "")
        case .status(.notAvailable): (.disconnected, "")
        case .status(.connectFailed): (.disconnected, "the last attempt failed")
        case .closed(_, let reason), .connectionLost(let reason): (.disconnected, reason)
        case .storeFull: (.lowStorage, "the client's store is full of what is not confirmed")
        default: nil
        }
    }
}
