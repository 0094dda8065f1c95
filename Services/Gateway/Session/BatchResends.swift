import DeviceProtocol
import SyncModel

/// The resend ladder of one channel for a simple device (D14); pure.
///
/// It counts for the lowest unacknowledged batch. The count is stored before each resend. Only time on an open
/// connection counts: sending a batch again after a reconnect is no step. The wait of a batch begins when it is written
/// to the connection.
struct BatchResends {
    /// The step to take when a wait ends.
    enum Step {
        /// Store the count, then send the batch again.
        case record(oplogID: OplogID, repeats: Int)
        /// Stop resending the batch.
        case giveUp(oplogIDs: [OplogID], upto: OplogID, attempts: Int)
    }

    private let ladder: ResendLadder
    /// A batch in flight, and the validity of its entries.
    private struct Sent {
        var batch: Mss_Device_V1_ChannelBatch
        /// The batch was written to the connection.
        var isWritten = false
        let firstID: OplogID
        let validUntil: [Int64: WallTime]
    }

    private var batches: [Sent] = []
    /// The resends of the batch that begins with this oplog.
    private var taken: (oplogID: OplogID, repeats: Int)
    private var dueAt: ContinuousClock.Instant?

    /// - Parameter recorded: the stored count, and the oplog that it belongs to.
    init(ladder: ResendLadder, recorded: (oplogID: OplogID, repeats: Int)) {
        self.ladder = ladder
        taken = recorded
    }

    private var lowest: OplogID? { batches.first?.firstID }
    private var repeats: Int { lowest == taken.oplogID ? taken.repeats : 0 }
    private var state: ResendLadder.State { ResendLadder.State(repeats: repeats, handOuts: repeats + 1) }

    /// Adds a batch that is sent. Returns it with the number of the attempt.
    mutating func sent(_ batch: Mss_Device_V1_ChannelBatch, of entries: [Oplog]) -> Mss_Device_V1_ChannelBatch {
        guard let first = entries.first else { return batch }
        let validUntil = Dictionary(entries.map { ($0.id.value, $0.validUntil) }) { old, _ in old }
        batches.append(Sent(batch: batch, firstID: first.id, validUntil: validUntil))
        return batches.count == 1 ? numbered(batch) : batch
    }

    /// Records that batches up to an id were written to the connection.
    mutating func written(upto: OplogID, now: ContinuousClock.Instant) {
        let isLowestNew = batches.first.map { !$0.isWritten } ?? false
        for index in batches.indices where batches[index].batch.upto <= upto.value { batches[index].isWritten = true }
        if isLowestNew { startWait(at: now) }
    }

    private mutating func startWait(at now: ContinuousClock.Instant) {
        dueAt = batches.first?.isWritten == true ? now + ladder.next(after: state).wait : nil
    }

    /// The rest of a resend that waits to be written, without recalled entries; nil: the device has acknowledged it.
    func owed(_ batch: Mss_Device_V1_ChannelBatch) -> Mss_Device_V1_ChannelBatch? {
        guard let sent = batches.first(where: { $0.batch.upto == batch.upto }) else { return nil }
        let left = Set(sent.batch.entries.map(\.oplogID))
        var owed = batch
        owed.entries.removeAll { !left.contains($0.oplogID) }
        return owed
    }

    /// Records an acknowledgement.
    ///
    /// - Returns: the oplogs that became acknowledged.
    mutating func acknowledged(upto: OplogID, now: ContinuousClock.Instant) -> [OplogID] {
        let done = batches.prefix { $0.isWritten && $0.batch.upto <= upto.value }
        guard !done.isEmpty else { return [] }
        batches.removeFirst(done.count)
        startWait(at: now)
        return done.flatMap { $0.batch.entries.map { OplogID($0.oplogID) } }
    }

    /// Removes a recalled oplog. The rest of its batch still moves the position.
    mutating func recalled(_ id: OplogID) {
        for index in batches.indices { batches[index].batch.entries.removeAll { $0.oplogID == id.value } }
    }

    /// Removes batches above an id that were not written.
    mutating func withdraw(after: OplogID) {
        batches.removeAll { $0.batch.upto > after.value }
        if batches.isEmpty { dueAt = nil }
    }

    /// The step that is due; nil: none.
    mutating func due(now: ContinuousClock.Instant) -> Step? {
        guard let dueAt, dueAt <= now, let batch = batches.first?.batch, let lowest else { return nil }
        switch ladder.next(after: state).step {
        case .handOut:
            // Requested again if the store does not record the count.
            self.dueAt = now + ladder.firstWait
            return .record(oplogID: lowest, repeats: repeats + 1)
        case .dead:
            return .giveUp(
                oplogIDs: batch.entries.map { OplogID($0.oplogID) }, upto: OplogID(batch.upto), attempts: repeats + 1)
        }
    }

    /// Applies a stored count.
    ///
    /// - Returns: the batch to resend, without expired entries; nil: the device has acknowledged it meanwhile.
    mutating func recorded(
        oplogID: OplogID, repeats: Int, now: ContinuousClock.Instant, databaseTime: WallTime
    ) -> Mss_Device_V1_ChannelBatch? {
        guard lowest == oplogID, let validUntil = batches.first?.validUntil else { return nil }
        batches[0].batch.entries.removeAll { validUntil[$0.oplogID].map { $0 <= databaseTime } ?? true }
        taken = (oplogID, repeats)
        dueAt = now + ladder.next(after: state).wait
        return numbered(batches[0].batch)
    }

    private func numbered(_ batch: Mss_Device_V1_ChannelBatch) -> Mss_Device_V1_ChannelBatch {
        guard repeats > 0 else { return batch }
        var batch = batch
        for index in batch.entries.indices { batch.entries[index].attempt = UInt32(repeats + 1) }
        return batch
    }
}
