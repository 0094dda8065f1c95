import DeviceProtocol
import SyncModel

/// What the rules of operations want of the store.
extension ClientEngine {
    /// Bytes of a frame for operations; the rest is for what stands around them.
    private static let frameRoom = DeviceProtocolLimits.operationsBytes - 1_024

    /// Sends what waits of a user's operations.
    func collectOperations(ofUser userID: String) throws(SyncError) {
        let operations = try outbox.takeFrame(ofUser: userID, maxBytes: Self.frameRoom)
        perform(machine.collected(operations, ofUser: userID, now: .now))
    }

    /// Notes what the service has taken.
    func note(_ answer: ClientOperations.Answer) throws(SyncError) {
        try outbox.answered(taken: answer.taken, over: answer.over, free: answer.free)
        if !answer.over.isEmpty { board.wakes.send(()) }
    }

    /// The next result for the app, nil when there is none now.
    ///
    /// - Parameters:
    ///   - components: of these; nil: of all.
    ///   - userID: only while this user is bound; nil: of whoever is.
    func nextResult(of components: Set<String>?, ofUser userID: String?) throws(SyncError) -> SyncOperationResult? {
        guard let bound = board.user?.userID, userID?.isSame(as: bound) ?? true else { return nil }
        let shown = shownResults[bound] ?? [:]
        guard let (number, result) = try outbox.result(ofUser: bound, of: components, after: shown) else { return nil }
        shownResults[bound, default: [:]][result.component] = number
        return result
    }
}
