import SyncModel

/// The range of ids in which the local store has every oplog that the server has for this device. A pure value.
///
/// The server can have more below `from`. Nothing above `upto` has arrived.
struct LocalRange: Hashable, Sendable {
    /// The local store has every oplog above this id …
    private(set) var from: OplogID
    /// … and up to this id.
    private(set) var upto: OplogID

    /// - Parameters:
    ///   - from: the stored value; zero for a new channel.
    ///   - upto: the stored value; zero for a new channel.
    init(from: OplogID = .zero, upto: OplogID = .zero) {
        self.from = from
        self.upto = upto
    }

    /// Extends the range after a batch.
    ///
    /// - Parameter discarded: the batch can lack oplogs up to this id, which the threshold has discarded; zero when it
    ///   lacks none.
    mutating func pushed(after: OplogID, upto end: OplogID, discarded: OplogID) {
        // A page of the history can already contain the discarded oplogs.
        let start = max(after, min(discarded, end))
        if start > upto { from = start }
        upto = max(upto, end)
    }

    /// Extends the range after a page of history, newest first. The page contains the ids above `lowest` and below
    /// `before`.
    ///
    /// A page that neither touches the range nor begins at the head has no effect, because it would count as the newest
    /// part.
    ///
    /// - Parameters:
    ///   - before: zero for a page that begins at the head.
    ///   - head: the highest id of the channel when the page was read.
    mutating func read(downTo lowest: OplogID, before: OplogID, head: OplogID) {
        let end = before == .zero ? head : OplogID(before.value - 1)
        if before != .zero, lowest > upto || upto == .zero { return }
        if end >= upto {
            // The page ends at or above the range. Both join when they touch; otherwise only the newer part stays.
            if lowest > upto { from = lowest } else { from = min(from, lowest) }
            upto = end
        } else if end >= from {
            from = min(from, lowest)
        }
    }

    /// Shrinks the range after oplogs up to this id were deleted from the store.
    mutating func dropped(upto end: OplogID) {
        from = max(from, end)
        upto = max(upto, from)
    }
}
