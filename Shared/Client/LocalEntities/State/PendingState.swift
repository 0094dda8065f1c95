/// The synchronisation state of a row (ENT1). A pure value with one method for each event.
///
/// Three facts decide the state: whether the server has the row, the edits that were made here, and the change in
/// flight. A row has at most one operation in flight; a change that is submitted meanwhile is sent after the result.
public struct PendingState: Sendable, Hashable {
    /// The accepted range of a server's counter: every JSON implementation has these integers, and the counter can
    /// still rise.
    static let serverCounters: ClosedRange<Int64> = 0...9_007_199_254_740_991

    /// Rises with each change. After a replay success or an import it is the server's counter.
    public private(set) var replayCounter: Int64 = 0
    /// The counter at submission; 0 while nothing is in flight. It is less than `replayCounter` when the row was
    /// changed since.
    public private(set) var replayPending: Int64 = 0
    /// The counter at the server's last refusal; 0 when the server has not refused a change since the row was last
    /// without a change.
    public private(set) var replayFailure: Int64 = 0
    /// The change in flight.
    private(set) var inFlight: PendingChange?
    /// Whether the row was submitted again while a change is in flight.
    private(set) var isSubmissionWanted = false
    /// Whether the server has the row, as far as this device knows.
    private(set) var isOnServer = false
    /// Whether the pending change is a creation. False for a row that was changed here and deleted on the server.
    private(set) var isLocalCreation = false
    /// Whether there is an edit that the server has not accepted.
    private(set) var isEdited = false
    /// Whether the row is deleted here and the server has not accepted it.
    private(set) var isRemoved = false
    /// Whether a descendant is pending. The transaction that changes a child sets it.
    var hasPendingChildren = false

    /// The row's own pending change, without its children.
    var ownChange: PendingChange {
        if isRemoved { return .delete }
        if isEdited { return isLocalCreation ? .create : .update }
        return .nothing
    }

    /// The pending change: C, U, D, P or N.
    public var pendingChange: PendingChange {
        let own = ownChange
        return own == .nothing && hasPendingChildren ? .parent : own
    }

    /// Whether the row or a child has a change that the server has not accepted.
    public var isPending: Bool { pendingChange != .nothing }
    /// Whether the row was created here and the server has not accepted it: not submitted, in flight, or refused.
    public var isCreated: Bool { pendingChange == .create }
    /// Whether the row was changed here and the server has not accepted it.
    public var isUpdated: Bool { pendingChange == .update }
    /// Whether the row was deleted here and the server has not accepted it.
    public var isDeleted: Bool { pendingChange == .delete }

    // MARK: Events of the app

    /// The state of a row that the app creates.
    static func created() -> PendingState {
        var state = PendingState()
        state.isLocalCreation = true
        state.isEdited = true
        state.count()
        return state
    }

    /// The state of a row that an import brings.
    static func imported(counter: Int64?) -> PendingState {
        var state = PendingState()
        state.isOnServer = true
        state.setCounter(counter)
        return state
    }

    /// The state of a row of a local-only type: never pending.
    static let localOnly = PendingState()

    /// The app creates a row again that it had deleted.
    ///
    /// - Returns: false when the row exists.
    mutating func recreate() -> Bool {
        guard isRemoved else { return false }
        isRemoved = false
        isEdited = true
        count()
        return true
    }

    /// The app changes the row.
    ///
    /// - Returns: false when the row is deleted.
    mutating func update() -> Bool {
        guard !isRemoved else { return false }
        isEdited = true
        count()
        return true
    }

    /// The result of a deletion.
    enum Deletion: Hashable { case refused, pending, rowRemoved }

    /// The app deletes the row. A row that the server has never received is removed at once.
    mutating func delete() -> Deletion {
        guard !isRemoved else { return .refused }
        guard isOnServer || inFlight != nil else {
            clear()
            return .rowRemoved
        }
        isRemoved = true
        isEdited = false
        count()
        return .pending
    }

    /// The result of a submission.
    enum Submission: Hashable {
        case nothing
        /// The change must be sent now.
        case send(PendingChange)
        /// The same change is already in flight.
        case alreadySubmitted
        /// The change is sent after the result of the change in flight.
        case afterAnswer
    }

    /// The app submits the row's own change.
    mutating func submit() -> Submission {
        let change = ownChange
        guard change != .nothing else { return .nothing }
        guard inFlight == nil else {
            guard replayCounter > replayPending else { return .alreadySubmitted }
            isSubmissionWanted = true
            return .afterAnswer
        }
        inFlight = change
        replayPending = replayCounter
        return .send(change)
    }

    /// The result of a cancellation.
    enum Cancellation: Hashable { case nothing, restored, rowRemoved }

    /// The app cancels the row's change. The server's version is restored; without one the row is removed.
    mutating func cancel() -> Cancellation {
        guard ownChange != .nothing else { return .nothing }
        clear()
        return isOnServer ? .restored : .rowRemoved
    }

    // MARK: Events of the server

    /// The effect of a result.
    enum Answer: Hashable {
        /// No change was in flight.
        case ignored
        /// Nothing is pending any more.
        case settled
        /// The row is removed.
        case rowRemoved
        /// A change is left; it must be sent now when it was submitted meanwhile.
        case pending(submitNow: Bool)
    }

    /// The server accepted the change in flight.
    ///
    /// - Parameter counter: the server's counter; nil: it has none, and the local counter stays.
    mutating func succeed(counter: Int64?) -> Answer {
        guard let accepted = inFlight else { return .ignored }
        let isChangedSince = replayCounter > replayPending
        let submitNow = isSubmissionWanted
        isOnServer = accepted != .delete
        isLocalCreation = !isOnServer
        inFlight = nil
        replayPending = 0
        isSubmissionWanted = false
        guard isChangedSince, !(isRemoved && !isOnServer) else {
            clear()
            setCounter(counter)
            return isOnServer ? .settled : .rowRemoved
        }
        return .pending(submitNow: submitNow)
    }

    /// The server refused the change in flight; the row stays pending.
    mutating func fail() -> Answer {
        guard inFlight != nil else { return .ignored }
        let submitNow = isSubmissionWanted
        inFlight = nil
        isSubmissionWanted = false
        replayPending = 0
        replayFailure = replayCounter
        guard !isRemoved || isOnServer else {
            clear()
            return .rowRemoved
        }
        return .pending(submitNow: submitNow)
    }

    /// The effect of an import.
    enum Import: Hashable {
        /// The import's version is the row's version.
        case applied
        /// The row is removed.
        case rowRemoved
        /// The edit stays; the import's version is the original.
        case originalChanged
        /// The edit stays without an original.
        case originalGone
    }

    /// An import brings a version or the deletion of the row.
    ///
    /// - Parameters:
    ///   - exists: false when the server has deleted the row.
    ///   - counter: the server's counter; nil: it has none, and the local counter stays.
    mutating func imported(exists: Bool, counter: Int64?) -> Import {
        isOnServer = exists
        guard ownChange != .nothing else {
            setCounter(counter)
            return exists ? .applied : .rowRemoved
        }
        if exists {
            isLocalCreation = false
            return .originalChanged
        }
        guard !isRemoved || inFlight != nil else {
            clear()
            return .rowRemoved
        }
        return .originalGone
    }

    // MARK: Parts

    private mutating func count() { replayCounter += 1 }

    private mutating func setCounter(_ counter: Int64?) {
        if let counter {
            replayCounter = min(max(counter, Self.serverCounters.lowerBound), Self.serverCounters.upperBound)
        }
    }

    private mutating func clear() {
        isEdited = false
        isRemoved = false
        isLocalCreation = false
        isSubmissionWanted = false
        inFlight = nil
        replayPending = 0
        replayFailure = 0
    }
}

/// The stored form.
extension PendingState {
    /// The Boolean members as bits of one number. Queries test bit 4 (16).
    var flags: Int64 {
        let parts = [isSubmissionWanted, isOnServer, isLocalCreation, isEdited, isRemoved, hasPendingChildren]
        return parts.enumerated().reduce(0) { $0 | ($1.element ? 1 << Int64($1.offset) : 0) }
    }

    /// Restores a stored state.
    init(counter: Int64, pending: Int64, failure: Int64, inFlight: String?, flags: Int64) {
        replayCounter = counter
        replayPending = pending
        replayFailure = failure
        self.inFlight = inFlight.flatMap { PendingChange(rawValue: $0) }
        isSubmissionWanted = flags & 1 != 0
        isOnServer = flags & 2 != 0
        isLocalCreation = flags & 4 != 0
        isEdited = flags & 8 != 0
        isRemoved = flags & 16 != 0
        hasPendingChildren = flags & 32 != 0
    }
}
