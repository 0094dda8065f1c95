import DeviceProtocol
import SyncModel

// What was handed out and waits to be written: the rules may change meanwhile.
extension SessionStateMachine {
    /// Whether a batch is for whoever is bound now: another user's is not for this one's eyes, and goes out when that
    /// user is bound again, as nothing of it was stored.
    func isOfThisBind(_ batch: Mss_Device_V1_ChannelBatch) -> Bool {
        #if KNOWN_BAD
            if KnownBad.bindNotCompared.isOn { return true }
        #endif
        return batch.bindNumber == 0 || batch.bindNumber == identity?.bindNumber
    }

    /// Whether data of a checked configuration is among what is about to be written: it leaves in the same turn in
    /// which the verdict was looked at.
    func hasChecked(_ gathered: [GatheredBatch], in world: SessionSurroundings) -> Bool {
        guard let identity else { return false }
        return gathered.contains {
            world.configuration(identity.instanceID, BizType($0.batch.bizType))?.checksSession ?? true
        }
    }

    /// Looks once more at what has waited since an earlier event. What may not go out now is taken back: it is read
    /// again when it may, so nothing is lost.
    ///
    /// - Returns: what goes on waiting.
    mutating func reconsider(
        _ gathered: [GatheredBatch], in world: SessionSurroundings
    ) -> (waiting: [GatheredBatch], actions: [SessionAction]) {
        #if KNOWN_BAD
            if KnownBad.waitingNotReconsidered.isOn || KnownBad.bindNotCompared.isOn { return (gathered, []) }
        #endif
        guard let identity else { return ([], []) }
        var ended: [SessionAction] = []
        let current = gathered.filter { isOfThisBind($0.batch) }.map { item in
            let (left, expired) = item.withoutExpired(at: world.databaseTime)
            if !expired.isEmpty { ended.append(.skipped(expired, because: .expired, channelID: item.channelID)) }
            return left
        }
        let withheld = current.filter { item in
            guard let key = keysByChannelID[item.channelID] else { return true }
            switch withholding(key, of: identity, in: world) {
            // It was there before the registration that is under way, so the filter that let it through decides.
            case nil, .awaitsFilter: return false
            case .awaitsWord, .noLease, .notEligible: return true
            }
        }
        guard !withheld.isEmpty else { return (current, ended) }
        for item in withheld {
            if item.batch.reread > 0 {
                rereads.takeBack(item.batch.reread)
            } else if let key = keysByChannelID[item.channelID] {
                windowUsed -= cursors[key]?.takeBack() ?? 0
            }
        }
        let channels = Set(withheld.map(\.channelID))
        // The store tells again what is to be re-read.
        let isToldAgain = withheld.contains { $0.batch.reread > 0 }
        return (
            current.filter { !channels.contains($0.channelID) },
            ended + (isToldAgain ? announce(in: world) : []) + readOn(in: world)
        )
    }

    /// These have been written to the connection.
    mutating func written(_ gathered: [GatheredBatch]) {
        for item in gathered where item.batch.reread == 0 {
            if let key = keysByChannelID[item.channelID] { cursors[key]?.written(upto: OplogID(item.batch.upto)) }
        }
    }
}
