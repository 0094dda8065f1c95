import DeviceProtocol

/// Stores the push frames of a connection, and drops them while the store is full. Not thread-safe.
struct PushIntake {
    private let store: LocalStore
    private let delivery: OplogDelivery
    private let sharedState: ClientSharedState
    /// The bytes that did not fit into the store. Batches after them were dropped, and arrive again on the next
    /// connection.
    private var requiredBytes: Int?
    /// Whether the app was informed that the store is an older copy of itself.
    private var hasReportedRollback = false

    init(store: LocalStore, delivery: OplogDelivery, sharedState: ClientSharedState) {
        self.store = store
        self.delivery = delivery
        self.sharedState = sharedState
    }

    /// Whether a batch was dropped on this connection. Later batches are dropped too, because they would look like a
    /// gap.
    var isDropping: Bool { requiredBytes != nil }

    /// Begins a new connection.
    mutating func begin() { requiredBytes = nil }

    /// Stores the batches; call `publish` after their acknowledgement.
    ///
    /// - Returns: nil when the store is full and the batches were dropped.
    mutating func store(
        _ batches: [Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32
    ) throws(SyncError) -> StoreOutcome? {
        let outcome = try store.store(batches, userID: userID, bindNumber: bindNumber)
        guard outcome.isFull else { return outcome }
        requiredBytes = StoreSpace.bytes(of: batches.lazy.flatMap(\.entries))
        sharedState.events.send(.storeFull)
        return nil
    }

    /// Informs the app of stored batches.
    mutating func publish(_ outcome: StoreOutcome) {
        if outcome.isRolledBack, !hasReportedRollback {
            hasReportedRollback = true
            sharedState.events.send(.storeRolledBack)
        }
        if outcome.hasResults { sharedState.dataSignals.send(()) }
        if !outcome.filledChannels.isEmpty { delivery.markUnread(outcome.filledChannels) }
    }

    /// Returns whether batches were dropped and the store now has space for them: after recorded confirmations, or
    /// after oplogs were deleted or expired.
    func hasFreedSpace() throws(SyncError) -> Bool {
        guard let requiredBytes else { return false }
        return try store.space.free(for: requiredBytes)
    }
}
