import DeviceProtocol
import SyncModel

/// The resend ladder of one channel for a device that does not tell stored from confirmed (spec D14); pure.
///
/// It stands on the lowest batch without an acknowledgement. Its count is on record before a batch goes out again, and
/// only time on an open connection moves it: a batch that is sent once more after a reconnect is no step. The wait of a
/// batch begins when the batch is written to the connection.
struct BatchResends {
    /// What is to be done when a wait is over.
    enum Step {
        /// Record the count, then send again.
        case record(oplogID: OplogID, repeats: Int)
        /// Go on behind the batch.
        case giveUp(oplogIDs: [OplogID], upto: OplogID, attempts: Int)
    }

    private let ladder: ResendLadder
    /// A batch under way, and how long each of its entries is valid.
    private struct Sent {
        var batch: Mss_Device_V1_ChannelBatch
        /// The batch was written to the connection.
        var isWritten = false
        let firstID: OplogID
        let validUntil: [Int64: WallTime]
    }

    private var batches: [Sent] = []
    /// Steps taken by the batch that begins with this oplog.
    private var taken: (oplogID: OplogID, repeats: Int)
    private var dueAt: ContinuousClock.Instant?

    /// - Parameter recorded: the count on record, and the oplog that it is of.
    init(ladder: ResendLadder, recorded: (oplogID: OplogID, repeats: Int)) {
        self.ladder = ladder
        taken = recorded
    }

    private var lowest: OplogID? { batches.first?.firstID }
    private var repeats: Int { lowest == taken.oplogID ? taken.repeats : 0 }
    private var state: ResendLadder.State { ResendLadder.State(repeats: repeats, handOuts: repeats + 1) }

    /// A batch goes out; it comes back with the number of the attempt.
    mutating func sent(_ batch: Mss_Device_V1_ChannelBatch, of entries: [Oplog]) -> Mss_Device_V1_ChannelBatch {
        guard let first = entries.first else { return batch }
        let validUntil = Dictionary(entries.map { ($0.id.value, $0.validUntil) }) { old, _ in old }
        batches.append(Sent(batch: batch, firstID: first.id, validUntil: validUntil))
        return batches.count == 1 ? numbered(batch) : batch
    }

    /// Batches up to here were written to the connection.
    mutating func written(upto: OplogID, now: ContinuousClock.Instant) {
        let isLowestNew = batches.first.map { !$0.isWritten } ?? false
        for index in batches.indices where batches[index].batch.upto <= upto.value { batches[index].isWritten = true }
        if isLowestNew { startWait(at: now) }
    }

    private mutating func startWait(at now: ContinuousClock.Instant) {
        dueAt = batches.first?.isWritten == true ? now + ladder.next(after: state).wait : nil
    }

    /// A repeat that waits to be written, without what was recalled since; nil: the device has acknowledged it.
    func owed(_ batch: Mss_Device_V1_ChannelBatch) -> Mss_Device_V1_ChannelBatch? {
        guard let sent = batches.first(where: { $0.batch.upto == batch.upto }) else { return nil }
        let left = Set(sent.batch.entries.map(\.oplogID))
        var owed = batch
        owed.entries.removeAll { !left.contains($0.oplogID) }
        return owed
    }

    /// The device has everything up to here; the oplogs that it has since now.
    mutating func acknowledged(upto: OplogID, now: ContinuousClock.Instant) -> [OplogID] {
        let done = batches.prefix { $0.isWritten && $0.batch.upto <= upto.value }
        guard !done.isEmpty else { return [] }
        batches.removeFirst(done.count)
        startWait(at: now)
        return done.flatMap { $0.batch.entries.map { OplogID($0.oplogID) } }
    }

    /// What was recalled does not go out again; what is left of its batch still moves the position.
    mutating func recalled(_ id: OplogID) {
        for index in batches.indices { batches[index].batch.entries.removeAll { $0.oplogID == id.value } }
    }

    /// What comes behind this was never written.
    mutating func takeBack(after: OplogID) {
        batches.removeAll { $0.batch.upto > after.value }
        if batches.isEmpty { dueAt = nil }
    }

    /// What is due; nil: nothing.
    mutating func due(now: ContinuousClock.Instant) -> Step? {
        guard let dueAt, dueAt <= now, let batch = batches.first?.batch, let lowest else { return nil }
        #if KNOWN_BAD
            if KnownBad.resendWithoutEnd.isOn {
                self.dueAt = now + ladder.firstWait
                return .record(oplogID: lowest, repeats: repeats + 1)
            }
        #endif
        switch ladder.next(after: state).step {
        case .handOut:
            // Asked for again should the record fail.
            self.dueAt = now + ladder.firstWait
            return .record(oplogID: lowest, repeats: repeats + 1)
        case .dead:
            return .giveUp(
                oplogIDs: batch.entries.map { OplogID($0.oplogID) }, upto: OplogID(batch.upto), attempts: repeats + 1)
        }
    }

    /// The count is on record: the batch that goes out again, without what has expired; nil when it was acknowledged
    /// meanwhile.
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
