import SyncModel

/// The batches of one channel that were handed out and that the device has not acknowledged; pure.
///
/// Until a batch is written to the connection, it can be withdrawn.
struct BatchesInFlight {
    /// A batch that was handed out and not written to the connection.
    private struct Unwritten {
        /// The end of the batch.
        let upto: OplogID
        /// The position of the cursor before the batch was handed out.
        let before: SendPosition
        /// The non-persistent entries of the batch, which cannot be read again.
        let nonPersistent: [Oplog]
        /// The ids of the batch's entries.
        let oplogs: [OplogID]
    }

    /// Payload bytes of unacknowledged batches, by the end of the batch.
    private var unacknowledged: [(upto: OplogID, bytes: Int)] = []
    private var unwritten: [Unwritten] = []

    /// Whether the device has acknowledged every batch.
    var isEmpty: Bool { unacknowledged.isEmpty }

    /// Unacknowledged payload bytes.
    var bytes: Int { unacknowledged.reduce(0) { $0 + $1.bytes } }

    /// The position before the first unwritten batch; nil: every batch was written.
    var writtenPosition: SendPosition? { unwritten.first?.before }

    /// The non-persistent entries of the unwritten batches.
    var unwrittenNonPersistent: [Oplog] { unwritten.flatMap(\.nonPersistent) }

    /// Whether an oplog is in an unwritten batch.
    func hasUnwritten(_ id: OplogID) -> Bool { unwritten.contains { $0.oplogs.contains(id) } }

    /// Whether a batch with this end is unwritten.
    func hasUnwrittenBatch(upto: OplogID) -> Bool { unwritten.contains { $0.upto == upto } }

    /// Adds a batch that is handed out.
    ///
    /// - Parameters:
    ///   - nonPersistent: the non-persistent ones of the entries.
    ///   - position: the position of the cursor before the batch.
    mutating func add(_ entries: [Oplog], upto: OplogID, nonPersistent: [Oplog], after position: SendPosition) {
        unacknowledged.append((upto, entries.reduce(0) { $0 + $1.payload.count }))
        unwritten.append(
            Unwritten(upto: upto, before: position, nonPersistent: nonPersistent, oplogs: entries.map(\.id)))
    }

    /// Records that batches up to an id were written to the connection. They cannot be withdrawn any more.
    mutating func written(upto: OplogID) { unwritten.removeAll { $0.upto <= upto } }

    /// Removes the unwritten batches.
    ///
    /// - Returns: the position before them, their non-persistent entries and their payload bytes; nil: every batch was
    ///   written.
    mutating func withdraw() -> (position: SendPosition, nonPersistent: [Oplog], bytes: Int)? {
        guard let position = writtenPosition else { return nil }
        let freed = unacknowledged.filter { $0.upto > position.announced }.reduce(0) { $0 + $1.bytes }
        unacknowledged.removeAll { $0.upto > position.announced }
        defer { unwritten = [] }
        return (position, unwrittenNonPersistent, freed)
    }

    /// Removes the batches that the device has acknowledged.
    ///
    /// - Returns: the freed bytes.
    mutating func acknowledge(upto: OplogID) -> Int {
        var freed = 0
        while let first = unacknowledged.first, first.upto <= upto {
            freed += first.bytes
            unacknowledged.removeFirst()
        }
        return freed
    }

    /// Takes over the written batches from the former cursor. They count as stored when the device acknowledges them.
    ///
    /// - Parameter announced: the position that the device has after the batches sent so far.
    mutating func inherit(from former: BatchesInFlight, upto announced: OplogID) {
        unacknowledged = former.unacknowledged.filter { $0.upto <= announced }
    }
}
