import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// Recoveries: the client requests one page after another, from the place that the store keeps.
extension ConnectionDriver {
    /// Continues all recoveries, also the refused ones, because the cause of the refusal may be gone.
    func recoverRefused() {
        recoveries.retryRefused()
        recover()
    }

    /// Requests the next page of a recovery, unless a request is in flight.
    func recover() {
        guard isOpen, !recoveries.isRequesting else { return }
        do throws(SyncError) {
            // The app may have bound another user since then, and the gateway does not know that user yet.
            let userID = boundUserID
            let open = try store.recoveries.open(forUser: userID)
            guard let recovery = recoveries.next(of: open) else { return }
            let request = Mss_Device_V1_HistoryRequest.with {
                $0.bizType = recovery.bizType
                $0.after = recovery.nextAfter
                $0.before = recovery.upto == 0 ? 0 : recovery.upto + 1
                $0.count = 100
                $0.oldestFirst = true
            }
            ask(.history(request)) { [weak self] answer in self?.recovered(answer, recovery, of: userID) }
        } catch {
            storeFailed(error)
        }
    }

    /// - Parameter userID: the bound user at the time of the request.
    private func recovered(_ answer: ClientRequests.Answer, _ recovery: LocalRecoveries.Recovery, of userID: String?) {
        recoveries.answered()
        guard case .history(let page) = answer, page.refusal != .tryAgain else { return retryRecovery(in: .seconds(1)) }
        guard page.refusal == .none, let kind = SyncModel.ChannelKind(wire: page.kind) else {
            // The recovery continues after a bind, on another connection, or after the retry delay.
            recoveries.refuse(recovery)
            retryRecovery(in: .seconds(60))
            return recover()
        }
        let key = LocalChannel.Key(
            kind: kind, userID: kind.needsUser ? recovery.userID : "", bizType: recovery.bizType)
        do throws(SyncError) {
            if kind.needsUser, recovery.userID.isEmpty, let userID {
                try store.recoveries.adopt(recovery, userID: userID)
                return recover()
            }
            guard try store.space.free(for: StoreSpace.bytes(of: page.entries)) else {
                return retryRecovery(in: .seconds(60))
            }
            if let channel = try store.recoveries.store(page, of: key, for: recovery) {
                delivery.markUnread([channel.row])
            }
            recover()
        } catch {
            storeFailed(error)
        }
    }

    private func retryRecovery(in delay: Duration) {
        recoveries.retry(at: .now + delay)
        sharedState.timerSignals.send(())
    }
}
