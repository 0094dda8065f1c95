import BusMessages
import SwiftProtobuf
import SyncModel
import Synchronization

/// Collects the replies of the gateways about the non-persistent pushes of one notice. SUCCESS means that a gateway
/// accepted the push for a connected device; NOT_ONLINE means that no gateway had an eligible session. If a gateway did
/// not reply, or its eligible session was already past the push, the outcome is uncertain (H4).
final class NonPersistentDelivery: Sendable {
    /// The outcome of one push after every gateway has replied or reached the time limit.
    enum Outcome: Hashable, Sendable {
        case taken
        case notTaken
        case uncertain
    }

    /// The time limit for the gateways' replies; shorter than the caller's own limit.
    static let limit = Duration.milliseconds(1_500)

    private struct State {
        var gatewaysLeft: Int
        var taken: Set<Int64> = []
        var missed: Set<Int64> = []
        var hasSilentGateway = false
    }

    private let state: Mutex<State>
    private let whenKnown: @Sendable (_ outcome: (OplogID) -> Outcome) -> Void

    /// - Parameter whenKnown: called once, with the outcome of each oplog.
    init(gateways: Int, whenKnown: @escaping @Sendable (_ outcome: (OplogID) -> Outcome) -> Void) {
        state = Mutex(State(gatewaysLeft: gateways))
        self.whenKnown = whenKnown
    }

    /// Records the reply of one gateway.
    ///
    /// - Parameters:
    ///   - taken: ids of the oplogs that the gateway accepted; nil: it did not reply.
    ///   - missed: ids of the oplogs that an eligible session could not receive any more.
    func answered(_ taken: [Int64]?, missed: [Int64] = []) {
        let final = state.withLock { state -> State? in
            state.gatewaysLeft -= 1
            state.taken.formUnion(taken ?? [])
            state.missed.formUnion(missed)
            if taken == nil { state.hasSilentGateway = true }
            return state.gatewaysLeft == 0 ? state : nil
        }
        guard let final else { return }
        whenKnown { id in
            if final.taken.contains(id.value) { return .taken }
            return final.hasSilentGateway || final.missed.contains(id.value) ? .uncertain : .notTaken
        }
    }
}
