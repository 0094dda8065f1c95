import DeliveryHistory
import Synchronization

/// Operations of a load run and what became of them; the run's devices and its tenant tell it, each on its own thread.
final class OperationProgress: Sendable {
    /// Latencies and counts since the last step began.
    struct Figures: Sendable {
        var submitted = 0
        var toTaken = LatencyHistogram()
        var toResult = LatencyHistogram()
    }

    private struct State {
        var checker = OperationChecker()
        var figures = Figures()
        /// When each open operation was due.
        var due: [String: Int64] = [:]
        /// Operations that the service will never take.
        var refused = 0
    }

    private let start = LoadRun.now
    private let state = Mutex(State())

    private var elapsed: Duration { .nanoseconds(LoadRun.now - start) }

    /// Operations without a result.
    var open: Int { state.withLock { $0.checker.open } }

    /// What was found wrong; operations that were refused for good are.
    var faults: [String] {
        state.withLock { state in
            let refusals = state.refused > 0 ? ["\(state.refused) operations were refused for good"] : []
            return state.checker.faults.map(\.description) + refusals
        }
    }

    /// Begins the count of a step.
    func begin() { state.withLock { $0.figures = Figures() } }

    /// What a step has counted.
    var figures: Figures { state.withLock { $0.figures } }

    /// A device does something to a thing.
    func submit(_ id: String, by device: String, to entity: String, due: Int64) {
        state.withLock { state in
            state.checker.submit(id, by: device, to: entity)
            state.due[id] = due
            state.figures.submitted += 1
        }
    }

    /// The gateway has answered a frame.
    func answered(taken: [String], refused: [String], at now: Int64) {
        state.withLock { state in
            for id in taken {
                // Its result may have come before.
                if let due = state.due[id] { state.figures.toTaken.record(nanoseconds: now - due) }
            }
            state.refused += refused.count
        }
    }

    /// The tenant is called; it does what it is asked to, once.
    func call(_ question: TenantQuestion) {
        let now = elapsed
        state.withLock { state in
            _ = state.checker.call(
                question.operationID, by: question.deviceID, to: question.entityKey, saying: .accepted, at: now)
        }
    }

    /// A result has reached a device.
    func tell(_ id: String, to device: String, isAccepted: Bool, code: Int, at now: Int64) {
        let elapsed = elapsed
        state.withLock { state in
            state.checker.tell(id, to: device, isAccepted: isAccepted, code: code, at: elapsed)
            state.checker.confirm(id)
            guard let due = state.due.removeValue(forKey: id) else { return }
            state.figures.toResult.record(nanoseconds: now - due)
        }
    }
}
