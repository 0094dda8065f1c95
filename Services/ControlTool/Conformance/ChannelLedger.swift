import DeviceProtocol
import SwiftProtobuf

/// One channel as a device keeps it: the table of DeviceProtocol.md, "Channels, positions, batches", as a value.
struct ChannelLedger: Sendable {
    /// The device's position P.
    private(set) var position: Int64
    /// What was stored, in the order of storing.
    private(set) var entries: [Mss_Device_V1_Entry] = []
    /// Batches that brought nothing new.
    private(set) var knownBatches = 0

    init(position: Int64 = 0) { self.position = position }

    var ids: [Int64] { entries.map(\.oplogID) }

    /// Takes a batch; re-reads are none of this ledger's business.
    ///
    /// - Throws: `Mismatch` for a batch that no gateway may send, and for a gap.
    mutating func take(_ batch: Mss_Device_V1_ChannelBatch) throws(Mismatch) {
        let ids = batch.entries.map(\.oplogID)
        let seen = PacketSummary.text(of: batch)
        try Mismatch.unless(zip(ids, ids.dropFirst()).allSatisfy { $0 < $1 }, "ids in rising order", seen: seen)
        try Mismatch.unless(
            ids.allSatisfy { batch.after < $0 && $0 <= batch.upto }, "ids above `after` and up to `upto`", seen: seen)
        try Mismatch.unless(batch.after <= position, "no gap above position \(position)", seen: seen)
        guard batch.upto > position else {
            knownBatches += 1
            return
        }
        entries += batch.entries.filter { $0.oplogID > position }
        position = batch.upto
    }

    /// The ledger after these batches.
    func taking(_ batches: [Mss_Device_V1_ChannelBatch]) throws(Mismatch) -> ChannelLedger {
        var copy = self
        for batch in batches where batch.reread == 0 { try copy.take(batch) }
        return copy
    }
}
