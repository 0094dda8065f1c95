import DeviceProtocol
import SyncModel

// What was handed out and waits to be written: the rules may change meanwhile.
extension SessionStateMachine {
    /// The pushes of batches that were taken from a channel.
    mutating func push(
        _ batches: [ChannelCursor.Taken.Batch], of key: ChannelKey, _ cursor: inout ChannelCursor,
        to identity: SessionIdentity, in world: SessionSurroundings
    ) -> [SessionAction] {
        var actions: [SessionAction] = []
        for batch in batches {
            windowUsed += batch.entries.reduce(0) { $0 + $1.payload.count }
            var message = Mss_Device_V1_ChannelBatch(
                key, of: identity, after: batch.after, upto: batch.upto, entries: batch.entries,
                passedOverUpto: batch.passedOverUpto)
            message.againUpto = cursor.againUpto(above: batch.after).value
            if let numbered = cursor.resends?.sent(message, of: batch.entries) { message = numbered }
            let pushes = batch.entries.filter { $0.recalls == nil }.map(\.id)
            actions.append(.push(message, handedOut: pushes, channelID: cursor.channelID))
            #if KNOWN_BAD
                if KnownBad.pointAtSend.isOn {
                    actions.append(record(batch.upto, of: key, cursor, for: identity, in: world))
                }
            #endif
        }
        return actions
    }

    /// Whether a batch is for whoever is bound now: another user's is not for this one's eyes, and goes out when that
    /// user is bound again, as nothing of it was stored.
    func isOfThisBind(_ batch: Mss_Device_V1_ChannelBatch) -> Bool {
        #if KNOWN_BAD
            if KnownBad.bindNotCompared.isOn { return true }
        #endif
        return batch.bindNumber == 0 || batch.bindNumber == identity?.bindNumber
    }

    /// Whether a page that was asked for under a bind is for the cursor that the channel has now. The cursor of an
    /// earlier bind may have learned of a recall that this one knows nothing of.
    func isOfThisBind(_ channelID: Int64, _ bindNumber: UInt32) -> Bool {
        #if KNOWN_BAD
            if KnownBad.pageOfEarlierBindTaken.isOn { return true }
        #endif
        return keysByChannelID[channelID]?.kind.needsUser != true || bindNumber == identity?.bindNumber
    }

    /// Whether data of a checked configuration is among what is about to be written: it leaves in the same turn in
    /// which the verdict was looked at.
    func hasChecked(_ gathered: [GatheredBatch], in world: SessionSurroundings) -> Bool {
        guard let identity else { return false }
        return gathered.contains {
            world.configuration(identity.instanceID, BizType($0.batch.bizType))?.checksSession ?? true
        }
    }

    /// Whether a batch is of a checked configuration, and the session was found invalid or ended.
    func isOfInvalidSession(_ batch: Mss_Device_V1_ChannelBatch, in world: SessionSurroundings) -> Bool {
        guard let identity, check.word == .invalid else { return false }
        return world.configuration(identity.instanceID, BizType(batch.bizType))?.checksSession ?? true
    }

    /// Looks once more at what has waited since an earlier event. What may not go out now is taken back: it is read
    /// again when it may, so nothing is lost. A recalled oplog is not read again, and a device that was not sent it
    /// gets no tombstone either.
    ///
    /// - Returns: what goes on waiting.
    mutating func reconsider(
        _ gathered: [GatheredBatch], in world: SessionSurroundings
    ) -> (waiting: [GatheredBatch], actions: [SessionAction]) {
        #if KNOWN_BAD
            if KnownBad.waitingNotReconsidered.isOn || KnownBad.bindNotCompared.isOn { return (gathered, []) }
        #endif
        guard identity != nil else { return ([], []) }
        var ended: [SessionAction] = []
        let current = gathered.compactMap { owed($0) }.map { item in
            let (left, expired) = item.withoutExpired(at: world.databaseTime)
            if !expired.isEmpty { ended.append(.skipped(expired, because: .expired, channelID: item.channelID)) }
            return left
        }
        let channels = channelsTakenBack(of: current, in: world)
        var (waiting, isToldAgain) = ([GatheredBatch](), false)
        for item in current {
            if item.batch.reread > 0, channels.withheld.contains(item.channelID) || isRecalled(item) {
                rereads.takeBack(item.batch.reread)
                isToldAgain = true
            } else if !channels.all.contains(item.channelID) || item.batch.reread > 0 {
                waiting.append(item)
            }
        }
        guard waiting.count < current.count else { return (waiting, ended) }
        for channelID in channels.all {
            if let key = keysByChannelID[channelID] { windowUsed -= cursors[key]?.takeBack() ?? 0 }
        }
        // The store tells again what is to be re-read.
        let left = world.behind(waiting.count)
        return (waiting, ended + (isToldAgain ? announce(in: left) : []) + readOn(in: left))
    }

    /// A batch that waits, as it is to be written; nil: it is not to be written any more.
    private func owed(_ item: GatheredBatch) -> GatheredBatch? {
        guard isOfThisBind(item.batch) else { return nil }
        if item.batch.reread > 0 { return item }
        guard let key = keysByChannelID[item.channelID], let batch = cursors[key]?.owed(item.batch) else { return nil }
        return item.with(batch)
    }

    /// Whether a batch that waits has an oplog that was recalled meanwhile.
    private func isRecalled(_ item: GatheredBatch) -> Bool {
        #if KNOWN_BAD
            if KnownBad.recallOfWaitingIgnored.isOn { return false }
        #endif
        if item.batch.reread > 0 {
            return item.batch.entries.contains { rereads.isRecalled($0.oplogID, channelID: item.channelID) }
        }
        guard let key = keysByChannelID[item.channelID], let cursor = cursors[key] else { return false }
        return item.batch.entries.contains { cursor.isRecalled(OplogID($0.oplogID)) }
    }

    /// The channels whose batches may not be written as they are: withheld, by a rule that has changed, and all of
    /// them, with those that contain a recalled oplog.
    private func channelsTakenBack(
        of items: [GatheredBatch], in world: SessionSurroundings
    ) -> (withheld: Set<Int64>, all: Set<Int64>) {
        guard let identity else { return ([], []) }
        let withheld = Set(items.map(\.channelID)).filter { channelID in
            guard let key = keysByChannelID[channelID] else { return true }
            switch withholding(key, of: identity, in: world) {
            // It was there before the registration that is under way, so the filter that let it through decides.
            case nil, .awaitsFilter: return false
            case .awaitsWord, .noLease, .notEligible: return true
            }
        }
        let recalled = items.filter { $0.batch.reread == 0 && isRecalled($0) }.map(\.channelID)
        return (withheld, withheld.union(recalled))
    }

    /// These have been written to the connection.
    mutating func written(_ gathered: [GatheredBatch], at now: ContinuousClock.Instant) {
        for item in gathered where item.batch.reread == 0 {
            if let key = keysByChannelID[item.channelID] {
                cursors[key]?.written(upto: OplogID(item.batch.upto), at: now)
            }
        }
    }
}
