import DeviceProtocol
import SyncModel

/// The rules of a session, checked again for batches that have waited since an earlier event; pure.
///
/// Batches that are withheld now are withdrawn and read again later, so no data is lost. A recalled oplog is not read
/// again, and a device that was not sent it gets no tombstone.
struct BatchRecheck {
    /// The batches that continue to wait.
    private(set) var waiting: [OutboundBatch] = []
    /// Oplogs that expired while they waited.
    private(set) var expired: [SessionAction] = []
    /// The channels whose batches are withdrawn.
    private(set) var channels: Set<Int64> = []
    /// The numbers of the re-reads that are withdrawn.
    private(set) var rereads: [UInt64] = []
    /// Whether batches are withdrawn.
    private(set) var withdraws = false

    init(
        _ items: [OutboundBatch], of window: DeliveryWindow, rereads known: SessionRereads, by eligibility: Eligibility,
        in context: SessionContext
    ) {
        func isRecalled(_ item: OutboundBatch) -> Bool {
            if item.batch.reread > 0 {
                return item.batch.entries.contains { known.isRecalled($0.oplogID, channelID: item.channelID) }
            }
            guard let cursor = window.cursor(of: item.channelID) else { return false }
            return item.batch.entries.contains { cursor.isRecalled(OplogID($0.oplogID)) }
        }
        let current = items.compactMap { Self.owed($0, of: window, by: eligibility) }.map { item in
            let (left, expired) = item.withoutExpired(at: context.databaseTime)
            if !expired.isEmpty {
                self.expired.append(.skipped(expired, because: .expired, channelID: item.channelID))
            }
            return left
        }
        let withheld = Set(current.map(\.channelID)).filter {
            Self.isWithheld($0, of: window, by: eligibility, in: context)
        }
        let recalled = current.filter { $0.batch.reread == 0 && isRecalled($0) }.map(\.channelID)
        channels = withheld.union(recalled)
        for item in current {
            if item.batch.reread > 0, withheld.contains(item.channelID) || isRecalled(item) {
                rereads.append(item.batch.reread)
            } else if !channels.contains(item.channelID) || item.batch.reread > 0 {
                waiting.append(item)
            }
        }
        withdraws = waiting.count < current.count
    }

    /// The rest of a waiting batch that must still be written; nil: nothing.
    private static func owed(
        _ item: OutboundBatch, of window: DeliveryWindow, by eligibility: Eligibility
    ) -> OutboundBatch? {
        guard item.isOf(bind: eligibility.identity.bindNumber) else { return nil }
        if item.batch.reread > 0 { return item }
        return window.cursor(of: item.channelID)?.owed(item.batch).map { item.with($0) }
    }

    private static func isWithheld(
        _ channelID: Int64, of window: DeliveryWindow, by eligibility: Eligibility, in context: SessionContext
    ) -> Bool {
        guard let key = window.keysByChannelID[channelID] else { return true }
        switch eligibility.withholding(key, channelID: channelID, in: context) {
        // The batch is older than the registration in flight, so the filter that allowed it still decides.
        case nil, .awaitsFilter: return false
        case .awaitsVerdict, .noLease, .notEligible: return true
        }
    }
}
