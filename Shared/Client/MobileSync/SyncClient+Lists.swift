/// Data for screens: the history and the state of channels.
extension SyncClient {
    /// Returns the newest oplogs of a Sync ID below an id, newest first.
    ///
    /// The client reads the local store up to its first gap, then asks the server, which answers within its retention.
    /// Reading the history neither hands out nor confirms an oplog.
    ///
    /// - Parameters:
    ///   - bizType: the Sync ID.
    ///   - conversation: only oplogs of this conversation; nil for all.
    ///   - before: nil for the newest oplogs; for older ones, the last id of the previous result.
    ///   - count: the most oplogs to return, 1 to 1,000; other values are clamped. 50 by default.
    /// - Throws: `SyncError.notEligible` when the server does not give this data to this device and user now; `store`;
    ///   `invalidArgument` for a conversation that has not 1 to 100 UTF-16 units, or has NUL.
    public func history(
        of bizType: String, conversation: String? = nil, before: Int64? = nil, count: Int = 50
    ) async throws(SyncError) -> SyncHistory {
        try ArgumentCheck.conversation(conversation)
        return try await ServerLists(engine: engine).history(
            of: bizType, conversation, before: before, count: ArgumentCheck.clamped(count))
    }

    /// Returns the newest oplogs of a Sync ID below an id that are in the local store, newest first, without a request
    /// to the server. Parameters as for `history`.
    ///
    /// - Returns: `isComplete` is false when the store lacks oplogs in between; `hasMore` is true when there are older
    ///   ones in the store, or can be on the server.
    /// - Throws: `SyncError.store`; `invalidArgument` as `history`.
    public func localHistory(
        of bizType: String, conversation: String? = nil, before: Int64? = nil, count: Int = 50
    ) async throws(SyncError) -> SyncHistory {
        try ArgumentCheck.conversation(conversation)
        let count = ArgumentCheck.clamped(count)
        let local = try await engine.localHistory(of: bizType, conversation, before: before, count: count)
        return SyncHistory(
            oplogs: local.allStored, hasMore: local.allStored.count >= count || local.requestBefore != nil,
            isComplete: local.oplogs.count == local.allStored.count)
    }

    /// The newest oplogs of a Sync ID on the device, and the list again after each change, for a screen that is always
    /// current. It is the local part of `history`.
    ///
    /// - Parameters:
    ///   - bizType: the Sync ID.
    ///   - conversation: only oplogs of this conversation; nil for all.
    ///   - count: the most oplogs in one list, 1 to 1,000; other values are clamped. 50 by default.
    public func observe(_ bizType: String, conversation: String? = nil, count: Int = 50) -> SyncOplogObservation {
        SyncOplogObservation(
            engine: engine, sharedState: sharedState, bizType: bizType, conversation: conversation,
            limit: ArgumentCheck.clamped(count))
    }

    /// Returns the conversations of a Sync ID on the device and on the server, the one with the newest oplog first.
    /// Without an answer of the gateway, or when this device and user may not receive the data now, the result contains
    /// only those on the device.
    ///
    /// - Throws: `SyncError.notEligible` when another user was bound meanwhile; `store`.
    public func conversations(of bizType: String) async throws(SyncError) -> [SyncConversation] {
        try await ServerLists(engine: engine).conversations(of: bizType)
    }

    /// Stores on the device that the user has read a conversation up to an oplog: `SyncConversation.unread` counts the
    /// later ones. A lower id than before has no effect, and neither has a Sync ID without data. It confirms nothing.
    ///
    /// - Throws: `SyncError.store`; `invalidArgument` as `history`.
    public func markRead(_ conversation: String, of bizType: String, upTo oplogID: Int64) async throws(SyncError) {
        try ArgumentCheck.conversation(conversation)
        try await engine.markRead(conversation, of: bizType, upTo: oplogID)
    }

    /// Returns the state of each channel of the device and the bound user, on the device and on the server, in the
    /// order of the Sync IDs. Without an answer of the gateway, the result contains only the local state.
    ///
    /// - Throws: `SyncError.store`.
    public func channelSummaries() async throws(SyncError) -> [SyncChannelSummary] {
        try await ServerLists(engine: engine).summaries()
    }
}
