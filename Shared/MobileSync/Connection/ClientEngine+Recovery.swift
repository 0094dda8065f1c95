import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// What the app wants to have sent again: asked for page by page, from where the store says, one after the other.
extension ClientEngine {
    /// Recovers, what was refused too: that may be over.
    func recoverRefused() {
        recoveryRetryAt = nil
        refusedRecoveries = []
        recover()
    }

    /// Asks for the next page of what is being sent again, unless one is on its way.
    func recover() {
        guard machine.phase == .open, !isRecovering else { return }
        do throws(SyncError) {
            // The app may have bound another, of whom the gateway does not know yet.
            let userID = boundUserID
            let recoveries = try store.recoveries(forUser: userID)
            guard let recovery = recoveries.first(where: { !refusedRecoveries.contains($0) }) else { return }
            isRecovering = true
            let request = Mss_Device_V1_HistoryRequest.with {
                $0.bizType = recovery.bizType
                $0.after = recovery.nextAfter
                $0.before = recovery.upto == 0 ? 0 : recovery.upto + 1
                $0.count = 100
                $0.oldestFirst = true
            }
            ask(.history(request)) { [self] answer in assumeIsolated { $0.recovered(answer, recovery, of: userID) } }
        } catch {
            storeFailed(error)
        }
    }

    /// - Parameter userID: who was bound when it was asked for.
    private func recovered(_ answer: ClientRequests.Answer, _ recovery: LocalStore.Recovery, of userID: String?) {
        isRecovering = false
        guard case .history(let page) = answer, page.refusal != .tryAgain else { return retryRecovery(in: .seconds(1)) }
        guard page.refusal == .none, let kind = SyncModel.ChannelKind(wire: page.kind) else {
            // It goes on when a bind or another connection lets it, or later.
            refusedRecoveries.insert(recovery)
            retryRecovery(in: .seconds(60))
            return recover()
        }
        let key = LocalChannel.Key(
            kind: kind, userID: kind.needsUser ? recovery.userID : "", bizType: recovery.bizType)
        do throws(SyncError) {
            if kind.needsUser, recovery.userID.isEmpty, let userID {
                try store.adopt(recovery, userID: userID)
                return recover()
            }
            guard try store.makeRoom(for: LocalStore.bytes(of: page.entries)) else {
                return retryRecovery(in: .seconds(60))
            }
            if let channel = try store.keep(page, of: key, for: recovery) {
                handOut.filled([channel.row])
                board.wakes.send(())
            }
            recover()
        } catch {
            storeFailed(error)
        }
    }

    private func retryRecovery(in delay: Duration) {
        recoveryRetryAt = .now + delay
        board.alarms.send(())
    }
}
