import SyncModel

/// From where to where a channel's local copy lacks nothing that the server has for this device; pure.
///
/// Below `from` the server may have more; above `upto` nothing has come yet.
struct LocalRange: Hashable, Sendable {
    /// Of ids above this nothing is lacking.
    private(set) var from: OplogID
    /// Up to here.
    private(set) var upto: OplogID

    /// - Parameters:
    ///   - from: as stored; zero for a new channel.
    ///   - upto: as stored; zero for a new channel.
    init(from: OplogID = .zero, upto: OplogID = .zero) {
        self.from = from
        self.upto = upto
    }

    /// A batch has moved the channel's position.
    ///
    /// - Parameter passedOver: up to there the batch may lack oplogs that the server has; zero: it lacks none.
    mutating func pushed(after: OplogID, upto end: OplogID, passedOver: OplogID) {
        // What a page of history has covered is not lacking.
        let start = max(after, min(passedOver, end))
        if start > upto { from = start }
        upto = max(upto, end)
    }

    /// A page of history, newest first, is stored: it covers ids above `lowest` and below `before`.
    ///
    /// One that neither touches what is here nor begins at the head changes nothing: it would pass for the newest part.
    ///
    /// - Parameters:
    ///   - before: zero: up to the channel's head.
    ///   - head: the channel's newest id when the page was read.
    mutating func read(downTo lowest: OplogID, before: OplogID, head: OplogID) {
        let end = before == .zero ? head : OplogID(before.value - 1)
        if before != .zero, lowest > upto || upto == .zero { return }
        if end >= upto {
            // It reaches beyond, or meets, what is here: together when they touch, else the newer alone.
            if lowest > upto { from = lowest } else { from = min(from, lowest) }
            upto = end
        } else if end >= from {
            from = min(from, lowest)
        }
    }

    /// Oplogs up to here have been deleted from the store.
    mutating func dropped(upto end: OplogID) {
        from = max(from, end)
        upto = max(upto, from)
    }
}
