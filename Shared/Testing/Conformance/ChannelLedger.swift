import DeviceProtocol
import SwiftProtobuf

/// One channel in a device: the table of DeviceProtocol.md, "Channels, positions, batches", as a value.
struct ChannelLedger: Sendable {
    /// The device's position P.
    private(set) var position: Int64
    /// The stored entries, in the order of storing.
    private(set) var entries: [Mss_Device_V1_Entry] = []
    /// Number of batches without new ids.
    private(set) var knownBatches = 0

    init(position: Int64 = 0) { self.position = position }

    var ids: [Int64] { entries.map(\.oplogID) }

    /// Applies a batch. Callers must leave re-reads out.
    ///
    /// - Throws: `Mismatch` for a batch that no gateway may send, and for a gap.
    mutating func apply(_ batch: Mss_Device_V1_ChannelBatch) throws(Mismatch) {
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

    /// The ledger after these batches, without re-reads.
    func applying(_ batches: [Mss_Device_V1_ChannelBatch]) throws(Mismatch) -> ChannelLedger {
        var copy = self
        for batch in batches where batch.reread == 0 { try copy.apply(batch) }
        return copy
    }
}
