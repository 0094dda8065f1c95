/// Marks a Sync ID as read while the object exists. Each iterator of `SyncOplogs` owns one.
final class SubscriptionToken: Sendable {
    /// The Sync ID; nil for all.
    let bizType: String?
    private let sharedState: ClientSharedState

    init(bizType: String?, sharedState: ClientSharedState) {
        self.bizType = bizType
        self.sharedState = sharedState
        sharedState.beginReading(bizType)
    }

    deinit { sharedState.endReading(bizType) }
}
