import BusMessages
import DeviceProtocol
import SyncModel

// What goes to a device more than once, and what its app did with oplogs.
extension SessionStateMachine {
    /// Re-reads go out as batches of their own, by the same rules as everything else.
    mutating func sendRereads(to identity: SessionIdentity, in world: SessionSurroundings) -> [SessionAction] {
        var (rereads, awaitsWord) = (rereads, false)
        let allowed = rereads.take { reread in
            guard let key = keysByChannelID[reread.channelID] else { return nil }
            let reason = withholding(key, of: identity, in: world)
            if case .awaitsWord = reason { awaitsWord = true }
            return reason == nil ? key.kind : nil
        }
        self.rereads = rereads
        return (awaitsWord ? askForWord(in: world) : [])
            + allowed.compactMap { reread in
                let oplog = Oplog(bus: reread.oplog)
                guard
                    let key = keysByChannelID[reread.channelID],
                    oplog.skipReason(for: identity.traits, now: world.databaseTime) == nil
                else { return nil }
                var message = Mss_Device_V1_ChannelBatch(
                    key, of: identity, after: OplogID(oplog.id.value - 1), upto: oplog.id, entries: [oplog],
                    reread: UInt64(bitPattern: reread.rereadID))
                message.newlyMatching = reread.newlyMatching
                return .push(message, handedOut: [oplog.id], channelID: reread.channelID)
            }
    }

    /// What the app did with oplogs.
    func received(_ report: Mss_Device_V1_ConfirmReport) -> [SessionAction] {
        guard let identity else { return [] }
        var found = ConfirmedReport(id: report.reportID, deviceID: identity.deviceID, userID: identity.userID)
        for item in report.channels {
            guard let cursor = cursor(item.kind, item.bizType, bind: item.bindNumber) else { continue }
            found.confirmed[cursor.channelID, default: []] += item.oplogIds.filter { $0 <= cursor.head.value }
        }
        for item in report.resent {
            guard let cursor = cursor(item.kind, item.bizType, bind: item.bindNumber), item.oplogID <= cursor.head.value
            else { continue }
            found.resent.append(
                ConfirmedReport.Resent(
                    channelID: cursor.channelID, oplogID: OplogID(item.oplogID),
                    attempts: min(Int(item.attempts), Limits.resendHandOuts), isDead: item.dead))
        }
        return [.confirm(found)]
    }

    /// The channel that a frame names; nil for an unknown one, and for one of an earlier bind.
    func cursor(_ kind: Mss_Device_V1_ChannelKind, _ bizType: String, bind: UInt32) -> ChannelCursor? {
        guard let kind = SyncModel.ChannelKind(wire: kind), !kind.needsUser || bind == identity?.bindNumber else {
            return nil
        }
        return cursors[ChannelKey(kind: kind, bizType: BizType(bizType))]
    }

    /// A simple device's acknowledgement is its app's too (spec D13); nobody waits for an answer.
    func confirmed(_ ids: [OplogID]?, in cursor: ChannelCursor) -> [SessionAction] {
        guard let ids, !ids.isEmpty, let identity else { return [] }
        let found = [cursor.channelID: ids.map(\.value)]
        return [
            .confirm(ConfirmedReport(id: nil, deviceID: identity.deviceID, userID: identity.userID, confirmed: found))
        ]
    }

    /// Some time has passed: the resend ladder of a simple device.
    mutating func resendDue(in world: SessionSurroundings) -> [SessionAction] {
        guard phase == .open, let identity, identity.isSimple else { return [] }
        var actions: [SessionAction] = []
        for key in cursors.keys {
            guard mayRead(key, of: identity, in: world), let step = cursors[key]?.resends?.due(now: world.now),
                var cursor = cursors[key]
            else { continue }
            switch step {
            case .record(let oplogID, let repeats):
                #if KNOWN_BAD
                    if KnownBad.resendBeforeRecord.isOn {
                        actions += resendRecorded(
                            channelID: cursor.channelID, oplogID: oplogID, repeats: repeats, in: world)
                    }
                #endif
                actions.append(
                    .recordResend(
                        channelID: cursor.channelID, deviceID: identity.deviceID,
                        storeID: identity.storeID, oplogID: oplogID, repeats: repeats))
            case .giveUp(let oplogIDs, let upto, let attempts):
                let (recorded, freed) = cursor.acknowledge(upto: upto)
                _ = cursor.resends?.acknowledged(upto: upto, now: world.now)
                cursors[key] = cursor
                windowUsed -= freed
                actions.append(.gaveUp(oplogIDs, attempts: attempts, channelID: cursor.channelID))
                if let recorded { actions.append(record(recorded, of: key, cursor, for: identity, in: world)) }
            }
        }
        return actions.isEmpty ? [] : actions + readOn(in: world)
    }

    /// The count of a repeat is on record: it goes out.
    mutating func resendRecorded(
        channelID: Int64, oplogID: OplogID, repeats: Int, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard phase == .open, let identity, let key = keysByChannelID[channelID] else { return [] }
        let reason = withholding(key, of: identity, in: world)
        if case .awaitsWord = reason {
            return park(.resend(channelID: channelID, oplogID, repeats: repeats), in: world)
        }
        guard reason == nil,
            let batch = cursors[key]?.resends?.recorded(
                oplogID: oplogID, repeats: repeats, now: world.now, databaseTime: world.databaseTime)
        else { return [] }
        let pushes = batch.entries.filter { $0.recalls == 0 }.map { OplogID($0.oplogID) }
        return [.push(batch, handedOut: pushes, channelID: channelID)]
    }
}
