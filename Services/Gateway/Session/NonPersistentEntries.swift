import SyncModel

/// The non-persistent entries of one channel that a session keeps, because they cannot be read later; pure.
struct NonPersistentEntries {
    /// Maximum of waiting entries. A session that is further behind misses the newest of them, like an offline device.
    private static let maximum = 64

    /// Entries above the sent data. They wait until the oplogs before them were read.
    private var waiting: [Oplog] = []
    /// The last entries that were handed out. A repeat of such a push has the same id.
    private var handedOut: [OplogID] = []

    /// Whether an entry waits.
    func isWaiting(_ id: OplogID) -> Bool { waiting.contains { $0.id == id } }

    /// Whether an entry was handed out in this session or waits.
    func holds(_ id: OplogID) -> Bool { handedOut.contains(id) || isWaiting(id) }

    /// Adds the non-persistent ones of a notice's entries.
    ///
    /// - Parameter sent: entries up to here do not wait.
    mutating func buffer(_ entries: [Oplog], above sent: OplogID) {
        let new = entries.filter { !$0.isPersistent && $0.id > sent && !isWaiting($0.id) }
        waiting += new.prefix(max(0, Self.maximum - waiting.count))
    }

    /// Removes the waiting entries up to an id and returns them.
    mutating func dequeue(upto: OplogID) -> [Oplog] {
        let due = waiting.filter { $0.id <= upto }
        waiting.removeAll { $0.id <= upto }
        return due
    }

    /// Records the non-persistent entries of a batch that is handed out.
    mutating func addHandedOut(_ entries: [Oplog]) {
        if !entries.isEmpty { handedOut = (handedOut + entries.map(\.id)).suffix(Self.maximum) }
    }

    /// Returns the entries of withdrawn batches to the waiting ones.
    ///
    /// - Parameter sent: the end of the data that stays sent.
    mutating func withdraw(_ entries: [Oplog], above sent: OplogID) {
        waiting = entries + waiting
        handedOut.removeAll { $0 > sent }
    }

    /// Takes over the entries of the former cursor.
    ///
    /// - Parameters:
    ///   - unwritten: the entries of its unwritten batches.
    ///   - sent: entries up to here do not wait.
    mutating func inherit(from former: NonPersistentEntries, unwritten: [Oplog], above sent: OplogID) {
        waiting = (unwritten + former.waiting).filter { $0.id > sent }
        handedOut = former.handedOut.filter { !isWaiting($0) }
    }
}
