import BusMessages
import DeviceProtocol
import SwiftProtobuf
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
            return reason == nil ? key : nil
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

    /// The app has done something with oplogs. What the device may not report is left out (spec D16). A report with
    /// something that it may report later waits for the tenant's word. Without one it gets no answer, so that the device
    /// repeats it.
    mutating func received(
        _ report: Mss_Device_V1_ConfirmReport, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard let identity else { return [] }
        let (found, awaitsVerdict) = confirmed(report, by: identity, in: world)
        if awaitsVerdict, let actions = hold(.with { $0.confirmReport = report }, in: world) { return actions }
        return [.confirm(found)]
    }

    /// - Returns: what may be reported, without an id when more of it may be later; and whether that takes a verdict.
    private func confirmed(
        _ report: Mss_Device_V1_ConfirmReport, by identity: SessionIdentity, in world: SessionSurroundings
    ) -> (ConfirmedReport, awaitsVerdict: Bool) {
        var found = ConfirmedReport(id: report.reportID, deviceID: identity.deviceID, userID: identity.userID)
        var awaitsVerdict = false
        func allows(_ key: ChannelKey) -> Bool {
            if mayReport(key, of: identity, in: world) { return true }
            switch withholding(key, of: identity, in: world, for: .report) {
            // Another device's is never this one's to report, nor what has no configuration; everything else may end.
            case .notEligible(.notOwner) where !ownership.isWanted: break
            case .notEligible(.configurationOffline): break
            case .notEligible(.sessionNotValid): (found.id, awaitsVerdict) = (nil, true)
            case nil, .noLease, .awaitsWord, .awaitsFilter, .notEligible: found.id = nil
            }
            return false
        }
        for item in report.channels {
            guard let key = channel(item.kind, item.bizType, bind: item.bindNumber), let cursor = cursors[key],
                allows(key)
            else { continue }
            found.confirmed[cursor.channelID, default: []] += item.oplogIds.filter { $0 <= cursor.head.value }
        }
        for item in report.resent {
            guard let key = channel(item.kind, item.bizType, bind: item.bindNumber), let cursor = cursors[key],
                item.oplogID <= cursor.head.value, allows(key)
            else { continue }
            found.resent.append(
                ConfirmedReport.Resent(
                    channelID: cursor.channelID, oplogID: OplogID(item.oplogID),
                    attempts: min(Int(item.attempts), Limits.resendHandOuts), isDead: item.dead))
        }
        return (found, awaitsVerdict)
    }

    /// The channel that a frame names; nil for one of an earlier bind.
    func channel(_ kind: Mss_Device_V1_ChannelKind, _ bizType: String, bind: UInt32) -> ChannelKey? {
        guard let kind = SyncModel.ChannelKind(wire: kind), !kind.needsUser || bind == identity?.bindNumber else {
            return nil
        }
        return ChannelKey(kind: kind, bizType: BizType(bizType))
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
                        channelID: cursor.channelID, receiver: resendReceiver(key, of: identity), oplogID: oplogID,
                        repeats: repeats))
            case .giveUp(let oplogIDs, let upto, let attempts):
                windowUsed -= cursor.acknowledge(upto: upto)
                _ = cursor.resends?.acknowledged(upto: upto, now: world.now)
                cursors[key] = cursor
                actions.append(.gaveUp(oplogIDs, attempts: attempts, channelID: cursor.channelID))
                actions += report(of: key, in: world)
            }
        }
        return actions.isEmpty ? [] : actions + readOn(in: world)
    }

    /// Whose repeats are counted: also where user or device has one sync point, each device has its own.
    private func resendReceiver(_ key: ChannelKey, of identity: SessionIdentity) -> SyncReceiver {
        SyncReceiver(
            deviceID: identity.deviceID, storeID: identity.storeID,
            userID: key.kind == .globalUser ? identity.userID : nil)
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
