import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Acknowledgements, confirmations, re-reads and resends.
extension DeviceSession {
    /// Processes an acknowledgement.
    mutating func receive(_ ack: Mss_Device_V1_StoredAck, in context: SessionContext) -> [SessionAction] {
        var actions: [SessionAction] = []
        for item in ack.channels {
            guard let key = eligibility.channel(item.kind, item.bizType, bind: item.bindNumber) else { continue }
            actions += window.acknowledge(key, upto: OplogID(item.upto), by: eligibility, in: context)
        }
        for number in ack.rereads { rereads.acknowledged(number) }
        actions += rereads.report(by: eligibility, in: context)
        if rereads.wantsMore() { actions += registerAgain(in: context) }
        return actions + readOn(in: context)
    }

    /// Processes a report of confirmations and resends. Parts that the device may not report are left out (D16). A
    /// report with a part that may be allowed later waits for the next verdict. Without one it gets no answer, so that
    /// the device repeats it.
    mutating func receive(_ report: Mss_Device_V1_ConfirmReport, in context: SessionContext) -> [SessionAction] {
        let (found, awaitsVerdict) = window.confirmed(report, by: eligibility, in: context)
        let confirm = SessionAction.confirm(found)
        return perform(
            awaitsVerdict ? .awaitsVerdict(refusal: confirm) : .actions([confirm]),
            of: .with { $0.confirmReport = report }, in: context)
    }

    /// Resends a batch, because its count is stored.
    mutating func resendRecorded(
        channelID: Int64, oplogID: OplogID, repeats: Int, in context: SessionContext
    ) -> [SessionAction] {
        guard registration.isOpen else { return [] }
        let outcome = window.resend(
            channelID: channelID, oplogID: oplogID, repeats: repeats, by: eligibility, in: context)
        switch outcome {
        case .nothing: return []
        case .awaitsVerdict: return park(.resend(channelID: channelID, oplogID, repeats: repeats), in: context)
        case .resend(let push): return [push]
        }
    }

    // MARK: Waiting batches

    /// Checks the rules again for batches that have waited since an earlier event.
    ///
    /// - Parameter isClosed: nothing is read again.
    /// - Returns: the batches that continue to wait.
    mutating func recheck(
        _ items: [OutboundBatch], isClosed: Bool, in context: SessionContext
    ) -> (waiting: [OutboundBatch], actions: [SessionAction]) {
        let recheck = BatchRecheck(items, of: window, rereads: rereads, by: eligibility, in: context)
        for number in recheck.rereads { rereads.withdraw(number) }
        guard recheck.withdraws, !isClosed else { return (recheck.waiting, recheck.expired) }
        for channelID in recheck.channels { window.withdraw(channelID) }
        let left = context.behind(recheck.waiting.count)
        // The store lists withdrawn re-reads again.
        let listing = recheck.rereads.isEmpty ? [] : registerAgain(in: left)
        return (recheck.waiting, recheck.expired + listing + readOn(in: left))
    }
}
