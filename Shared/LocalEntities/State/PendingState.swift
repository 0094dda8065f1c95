/// Where a row stands between this device and the server (spec, two-way §2): pure, one method for each event.
///
/// What is pending follows from three things: whether the server has the row, what was done to it here, and what is on
/// its way. One operation of a row is on its way at a time; what is submitted meanwhile follows its answer.
public struct PendingState: Sendable, Hashable {
    /// What is taken of a server's counter: within what JSON carries everywhere, with room to count on.
    static let serverCounters: ClosedRange<Int64> = 0...9_007_199_254_740_991

    /// Rises with each change; after a replay success or an import it is the server's.
    public private(set) var replayCounter: Int64 = 0
    /// The counter as it was submitted; 0 while nothing is on its way. Less than the counter: changed since.
    public private(set) var replayPending: Int64 = 0
    /// The counter when the server last refused; 0 when it did not since all was settled.
    public private(set) var replayFailure: Int64 = 0
    /// What is on its way.
    private(set) var inFlight: PendingChange?
    /// Submitted once more while something is on its way.
    private(set) var isSubmissionWanted = false
    /// The server has it, as far as is known here.
    private(set) var isOnServer = false
    /// It is the server's to create; false too for a row that was changed here and deleted there.
    private(set) var isLocalCreation = false
    /// There is an edit that the server has not accepted.
    private(set) var isEdited = false
    /// It is deleted here, and the server has not accepted that.
    private(set) var isRemoved = false
    /// A child, or a child's child, is pending; whoever changes children says so.
    var hasPendingChildren = false

    /// What the row itself has that is not settled, without its children.
    var ownChange: PendingChange {
        if isRemoved { return .delete }
        if isEdited { return isLocalCreation ? .create : .update }
        return .nothing
    }

    /// C, U, D, P or N.
    public var pendingChange: PendingChange {
        let own = ownChange
        return own == .nothing && hasPendingChildren ? .parent : own
    }

    /// Whether the row, or a child of it, has a change that is not settled.
    public var isPending: Bool { pendingChange != .nothing }
    /// Created here, and not accepted by the server: not submitted, on its way, or refused.
    public var isCreated: Bool { pendingChange == .create }
    /// Changed here, and not accepted by the server.
    public var isUpdated: Bool { pendingChange == .update }
    /// Deleted here, and not accepted by the server.
    public var isDeleted: Bool { pendingChange == .delete }

    // MARK: Events of the app

    /// A row that the app has created.
    static func created() -> PendingState {
        var state = PendingState()
        state.isLocalCreation = true
        state.isEdited = true
        state.count()
        return state
    }

    /// A row that the server has told of.
    static func imported(counter: Int64?) -> PendingState {
        var state = PendingState()
        state.isOnServer = true
        state.take(counter)
        return state
    }

    /// A row of a type that is local only: never pending.
    static let localOnly = PendingState()

    /// The app creates a row again that it had deleted.
    ///
    /// - Returns: false when it is there.
    mutating func recreate() -> Bool {
        guard isRemoved else { return false }
        isRemoved = false
        isEdited = true
        count()
        return true
    }

    /// The app changes the row.
    ///
    /// - Returns: false when it is deleted.
    mutating func update() -> Bool {
        guard !isRemoved else { return false }
        isEdited = true
        count()
        return true
    }

    /// What a deletion comes to.
    enum Deletion: Hashable { case refused, pending, rowRemoved }

    /// The app deletes the row; one that the server has never heard of is gone at once.
    mutating func delete() -> Deletion {
        guard !isRemoved else { return .refused }
        guard isOnServer || inFlight != nil else {
            settle()
            return .rowRemoved
        }
        isRemoved = true
        isEdited = false
        count()
        return .pending
    }

    /// What a submission comes to.
    enum Submission: Hashable {
        case nothing
        /// This change goes now.
        case send(PendingChange)
        /// It is on its way as it is.
        case alreadySubmitted
        /// It goes when what is on its way is answered.
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

    /// What a cancellation comes to.
    enum Cancellation: Hashable { case nothing, restored, rowRemoved }

    /// The app gives up the row's change: the server's version is restored, or the row is gone when there is none.
    mutating func cancel() -> Cancellation {
        guard ownChange != .nothing else { return .nothing }
        settle()
        return isOnServer ? .restored : .rowRemoved
    }

    // MARK: Events of the server

    /// What an answer comes to.
    enum Answer: Hashable {
        /// Nothing is on its way.
        case ignored
        /// Nothing is pending any more.
        case settled
        /// The row is gone.
        case rowRemoved
        /// A change is left; it goes now when it was submitted meanwhile.
        case pending(submitNow: Bool)
    }

    /// The server accepted what is on its way.
    ///
    /// - Parameter counter: the server's; nil: it has none, and ours stays.
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
            settle()
            take(counter)
            return isOnServer ? .settled : .rowRemoved
        }
        return .pending(submitNow: submitNow)
    }

    /// The server refused what is on its way; the row stays pending.
    mutating func fail() -> Answer {
        guard inFlight != nil else { return .ignored }
        let submitNow = isSubmissionWanted
        inFlight = nil
        isSubmissionWanted = false
        replayPending = 0
        replayFailure = replayCounter
        guard !isRemoved || isOnServer else {
            settle()
            return .rowRemoved
        }
        return .pending(submitNow: submitNow)
    }

    /// What an import comes to.
    enum Import: Hashable {
        /// It is the row now.
        case applied
        /// The row is gone.
        case rowRemoved
        /// The edit stays; the original is the import's version.
        case originalChanged
        /// The edit stays; there is no original any more.
        case originalGone
    }

    /// The server tells of the row.
    ///
    /// - Parameters:
    ///   - exists: false when it is deleted there.
    ///   - counter: the server's; nil: it has none, and ours stays.
    mutating func imported(exists: Bool, counter: Int64?) -> Import {
        isOnServer = exists
        guard ownChange != .nothing else {
            take(counter)
            return exists ? .applied : .rowRemoved
        }
        if exists {
            isLocalCreation = false
            return .originalChanged
        }
        guard !isRemoved || inFlight != nil else {
            settle()
            return .rowRemoved
        }
        return .originalGone
    }

    // MARK: Parts

    private mutating func count() { replayCounter += 1 }

    private mutating func take(_ counter: Int64?) {
        if let counter {
            replayCounter = min(max(counter, Self.serverCounters.lowerBound), Self.serverCounters.upperBound)
        }
    }

    private mutating func settle() {
        isEdited = false
        isRemoved = false
        isLocalCreation = false
        isSubmissionWanted = false
        inFlight = nil
        replayPending = 0
        replayFailure = 0
    }
}

/// How a store keeps it.
extension PendingState {
    /// The yes-or-no parts in one number.
    var flags: Int64 {
        let parts = [isSubmissionWanted, isOnServer, isLocalCreation, isEdited, isRemoved, hasPendingChildren]
        return parts.enumerated().reduce(0) { $0 | ($1.element ? 1 << Int64($1.offset) : 0) }
    }

    /// The state of what a store has kept.
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
