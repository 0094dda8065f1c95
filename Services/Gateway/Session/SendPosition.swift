import SyncModel

/// The position up to which one channel was sent to a device; pure. When a batch is withdrawn, the cursor returns to
/// its position before the batch.
///
/// `announced` is below `sent` while oplogs were skipped after the last batch.
struct SendPosition {
    /// The part of a channel that is a backlog, to which a threshold applies (D10).
    enum Backlog: Hashable, Sendable {
        /// No backlog: the session was open and eligible when the data came, or the first page of the backlog was
        /// handed out.
        case none
        /// The session is not eligible. The backlog will reach to the head at the moment when it becomes eligible.
        case waits
        /// The backlog reaches to the head at the opening. It stays the same when a page fails or unwritten batches are
        /// withdrawn.
        case open(upto: OplogID)
    }

    /// Every oplog up to here was sent to the device, or skipped for good.
    private(set) var sent: OplogID
    /// The position that the device has after the batches sent so far: the `after` of the next batch.
    private(set) var announced: OplogID
    /// Valid oplogs up to here were left out. The next batch tells the device; zero: none.
    private(set) var leftOutUpto = OplogID.zero
    private var backlog: Backlog

    /// Valid oplogs between `announced` and `sent` count as left out.
    init(sent: OplogID, announced: OplogID, backlog: Backlog = .none) {
        self.sent = sent
        self.announced = announced
        self.backlog = backlog
        leaveOut(upto: sent)
    }

    /// Raises `sent`; a lower value has no effect.
    mutating func raiseSent(to id: OplogID) { sent = max(sent, id) }

    /// Records that a batch with this end is sent. It also tells the device about the oplogs that were left out.
    mutating func announce(upto: OplogID) {
        announced = upto
        leftOutUpto = .zero
    }

    /// Records that valid oplogs between the device's position and this id are left out.
    mutating func leaveOut(upto: OplogID) {
        if upto > announced { leftOutUpto = max(leftOutUpto, upto) }
    }

    // MARK: Backlog

    /// Records that the session is not eligible for the channel.
    mutating func suspendBacklog() { backlog = .waits }

    /// The head up to which a threshold counts for the next page; nil: the next page is not the first of a backlog.
    ///
    /// - Parameter head: the end of a backlog that begins now.
    mutating func openBacklog(head: OplogID) -> OplogID? {
        if backlog == .waits { backlog = .open(upto: head) }
        guard case .open(let upto) = backlog else { return nil }
        return upto
    }

    /// Records that the first page of the backlog was handed out.
    mutating func beganBacklog() { backlog = .none }

    /// Takes over the backlog from the position of the former cursor, unless a backlog begins with this one.
    mutating func inheritBacklog(from former: SendPosition) {
        if backlog == .none { backlog = former.backlog }
    }
}
