import BusMessages
import DeviceProtocol
import SyncModel

// Acknowledgements, the sync points that they move, and the resends of a simple device.
extension DeliveryWindow {
    // MARK: Acknowledgements

    /// Records the acknowledgement of a channel's data.
    ///
    /// - Returns: the actions that report it.
    mutating func acknowledge(
        _ key: ChannelKey, upto: OplogID, by eligibility: Eligibility, in context: SessionContext
    ) -> [SessionAction] {
        guard cursors[key] != nil else { return [] }
        used -= cursors[key]?.acknowledge(upto: upto) ?? 0
        cursors[key]?.confirm(upto: upto, now: context.now)
        return report(of: key, by: eligibility, in: context)
    }

    /// Reports the device's progress in a channel, if it may (D16): the stored position, and for a simple device the
    /// confirmed oplogs.
    mutating func report(
        of key: ChannelKey, by eligibility: Eligibility, in context: SessionContext
    ) -> [SessionAction] {
        guard let cursor = cursors[key], cursor.owesReport, eligibility.mayReport(key, in: context),
            cursor.countsClaim == eligibility.countsClaim(key, in: context),
            let (upto, confirmed) = cursors[key]?.dequeueReport()
        else { return [] }
        var actions: [SessionAction] = []
        if !confirmed.isEmpty {
            // A simple device's acknowledgement also confirms (D13). It needs no answer.
            let found = [cursor.channelID: confirmed.map(\.value)]
            actions.append(
                .confirm(
                    ConfirmedReport(
                        id: nil, deviceID: eligibility.identity.deviceID, userID: eligibility.identity.userID,
                        confirmed: found)))
        }
        if let upto {
            actions.append(
                .record(
                    channelID: cursor.channelID, receiver: eligibility.receiver(key, in: context),
                    acknowledged: cursor.acknowledged, upto: upto))
        }
        return actions
    }

    /// Reports progress that could not be reported when the device acknowledged it.
    mutating func reportOwed(by eligibility: Eligibility, in context: SessionContext) -> [SessionAction] {
        let owing = cursors.filter { $0.value.owesReport }.map(\.key)
        return owing.flatMap { report(of: $0, by: eligibility, in: context) }
    }

    /// Whether channels have other receivers than before, so that their sync points must be read.
    func hasOtherReceivers(by eligibility: Eligibility, in context: SessionContext) -> Bool {
        cursors.contains { key, cursor in
            eligibility.countsClaim(key, in: context).map { $0 != cursor.countsClaim } ?? false
        }
    }

    /// The part of a report of confirmations and resends that the device may make (D16).
    ///
    /// - Returns: the allowed part, without an id if more of it may be allowed later; and whether that needs a verdict.
    func confirmed(
        _ report: Mss_Device_V1_ConfirmReport, by eligibility: Eligibility, in context: SessionContext
    ) -> (ConfirmedReport, awaitsVerdict: Bool) {
        let identity = eligibility.identity
        var found = ConfirmedReport(id: report.reportID, deviceID: identity.deviceID, userID: identity.userID)
        var awaitsVerdict = false
        func allows(_ key: ChannelKey) -> Bool {
            if eligibility.mayReport(key, in: context) { return true }
            switch eligibility.withholding(key, channelID: nil, in: context, for: .report) {
            // Data that another device owns, or that has no configuration, can never be reported by this device. Every
            // other reason may end.
            case .notEligible(.notOwner) where !eligibility.ownership.isWanted: break
            case .notEligible(.configurationOffline): break
            case .notEligible(.sessionNotValid): (found.id, awaitsVerdict) = (nil, true)
            case nil, .noLease, .awaitsVerdict, .awaitsFilter, .notEligible: found.id = nil
            }
            return false
        }
        for item in report.channels {
            guard let key = eligibility.channel(item.kind, item.bizType, bind: item.bindNumber),
                let cursor = cursors[key], allows(key)
            else { continue }
            found.confirmed[cursor.channelID, default: []] += item.oplogIds.filter { $0 <= cursor.head.value }
        }
        for item in report.resent {
            guard let key = eligibility.channel(item.kind, item.bizType, bind: item.bindNumber),
                let cursor = cursors[key], item.oplogID <= cursor.head.value, allows(key)
            else { continue }
            found.resent.append(
                ConfirmedReport.Resent(
                    channelID: cursor.channelID, oplogID: OplogID(item.oplogID),
                    attempts: min(Int(item.attempts), Limits.resendHandOuts), isDead: item.dead))
        }
        return (found, awaitsVerdict)
    }

    // MARK: Resends

    /// Performs the due steps of a simple device's resend ladder.
    mutating func resendDue(by eligibility: Eligibility, in context: SessionContext) -> [SessionAction] {
        var actions: [SessionAction] = []
        for key in cursors.keys {
            guard let channelID = cursors[key]?.channelID,
                eligibility.mayRead(key, channelID: channelID, in: context),
                let step = cursors[key]?.resends?.due(now: context.now)
            else { continue }
            switch step {
            case .record(let oplogID, let repeats):
                actions.append(
                    .recordResend(
                        channelID: channelID, receiver: eligibility.resendReceiver(key), oplogID: oplogID,
                        repeats: repeats))
            case .giveUp(let oplogIDs, let upto, let attempts):
                used -= cursors[key]?.acknowledge(upto: upto) ?? 0
                _ = cursors[key]?.resends?.acknowledged(upto: upto, now: context.now)
                actions.append(.gaveUp(oplogIDs, attempts: attempts, channelID: channelID))
                actions += report(of: key, by: eligibility, in: context)
            }
        }
        return actions
    }

    /// The effect of a stored count of a resend.
    enum ResendOutcome {
        case nothing
        /// The batch waits for a verdict.
        case awaitsVerdict
        case resend(SessionAction)
    }

    /// Resends a batch, because its count is stored.
    mutating func resend(
        channelID: Int64, oplogID: OplogID, repeats: Int, by eligibility: Eligibility, in context: SessionContext
    ) -> ResendOutcome {
        guard let key = keysByChannelID[channelID] else { return .nothing }
        let reason = eligibility.withholding(key, channelID: channelID, in: context)
        if case .awaitsVerdict = reason { return .awaitsVerdict }
        guard reason == nil,
            let batch = cursors[key]?.resends?.recorded(
                oplogID: oplogID, repeats: repeats, now: context.now, databaseTime: context.databaseTime)
        else { return .nothing }
        let pushes = batch.entries.filter { $0.recalls == 0 }.map { OplogID($0.oplogID) }
        return .resend(.push(batch, handedOut: pushes, channelID: channelID))
    }

    // MARK: Waiting batches

    /// Withdraws the unwritten batches of a channel.
    mutating func withdraw(_ channelID: Int64) {
        if let key = keysByChannelID[channelID] { used -= cursors[key]?.withdraw() ?? 0 }
    }

    /// Records that a batch was written to the connection.
    mutating func recordWritten(_ item: OutboundBatch, at now: ContinuousClock.Instant) {
        guard item.batch.reread == 0, let key = keysByChannelID[item.channelID] else { return }
        cursors[key]?.written(upto: OplogID(item.batch.upto), at: now)
    }
}
