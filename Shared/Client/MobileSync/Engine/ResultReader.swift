import SyncModel

/// Reads the results of operations for the app, each one once in a run. Not thread-safe.
struct ResultReader {
    private let outbox: OperationOutbox
    private let sharedState: ClientSharedState
    /// The number of the last result that the app received in this run, by user and component. So sequences of
    /// different components do not block each other.
    private var lastNumbers: [String: [String: Int64]] = [:]

    init(outbox: OperationOutbox, sharedState: ClientSharedState) {
        self.outbox = outbox
        self.sharedState = sharedState
    }

    /// Begins with the first unconfirmed result again.
    mutating func startOver() { lastNumbers = [:] }

    /// Returns the next result for the app; nil when there is none now.
    ///
    /// - Parameters:
    ///   - components: nil for all components.
    ///   - userID: returns a result only while this user is bound; nil for any bound user.
    mutating func next(of components: Set<String>?, ofUser userID: String?) throws(SyncError) -> SyncOperationResult? {
        guard let bound = sharedState.user?.userID, userID?.isSame(as: bound) ?? true else { return nil }
        let shown = lastNumbers[bound] ?? [:]
        guard let (number, result) = try outbox.result(ofUser: bound, of: components, after: shown) else { return nil }
        lastNumbers[bound, default: [:]][result.component] = number
        return result
    }
}
