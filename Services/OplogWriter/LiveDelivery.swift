import BusMessages
import SwiftProtobuf
import SyncModel
import Synchronization

/// Pushes of one channel that are not persistent, waiting for what the gateways say: SUCCESS means that a gateway took
/// it for a live connection, and NOT_ONLINE that no gateway had an eligible one. Silence is neither, and so is a gateway
/// whose eligible session had gone past the push (spec H4).
final class LiveDelivery: Sendable {
    /// What is known of one push once every gateway has answered or run out of time.
    enum Outcome: Hashable, Sendable {
        case taken
        case notTaken
        case uncertain
    }

    /// Less than the caller waits for its own answer.
    static let limit = Duration.milliseconds(1_500)

    private struct State {
        var gatewaysLeft: Int
        var taken: Set<Int64> = []
        var missed: Set<Int64> = []
        var isAnyoneSilent = false
    }

    private let state: Mutex<State>
    private let whenKnown: @Sendable (_ outcome: (OplogID) -> Outcome) -> Void

    /// - Parameter whenKnown: called once, with what became of each oplog.
    init(gateways: Int, whenKnown: @escaping @Sendable (_ outcome: (OplogID) -> Outcome) -> Void) {
        state = Mutex(State(gatewaysLeft: gateways))
        self.whenKnown = whenKnown
    }

    /// A gateway has said which oplogs it took, and which an eligible session could not be given any more; nil: it did
    /// not answer.
    func answered(_ taken: [Int64]?, missed: [Int64] = []) {
        let final = state.withLock { state -> State? in
            state.gatewaysLeft -= 1
            state.taken.formUnion(taken ?? [])
            state.missed.formUnion(missed)
            if taken == nil { state.isAnyoneSilent = true }
            return state.gatewaysLeft == 0 ? state : nil
        }
        guard let final else { return }
        whenKnown { id in
            if final.taken.contains(id.value) { return .taken }
            #if KNOWN_BAD
                if KnownBad.notOnlineOnSilence.isOn { return .notTaken }
                if KnownBad.missedIsOffline.isOn, !final.isAnyoneSilent { return .notTaken }
            #endif
            return final.isAnyoneSilent || final.missed.contains(id.value) ? .uncertain : .notTaken
        }
    }
}
