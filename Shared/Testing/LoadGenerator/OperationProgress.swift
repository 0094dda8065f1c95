import DeliveryHistory
import Synchronization
import ToolSupport

/// The operations of a load run. The devices and the tenant record events from their own threads.
final class OperationProgress: Sendable {
    /// Latencies and counts since the start of the current step.
    struct Figures: Sendable {
        var submitted = 0
        var toTaken = LatencyHistogram()
        var toResult = LatencyHistogram()
    }

    private struct State {
        var checker = OperationChecker()
        var figures = Figures()
        /// Due time of each open operation.
        var due: [String: Int64] = [:]
        /// Number of finally refused operations.
        var refused = 0
    }

    private let start = LoadRun.now
    private let state = Mutex(State())

    private var elapsed: Duration { .nanoseconds(LoadRun.now - start) }

    /// Number of operations of all steps.
    var submitted: Int { state.withLock { $0.checker.submitted } }

    /// Number of operations without a result.
    var open: Int { state.withLock { $0.checker.open } }

    /// Violations, and the number of refused operations.
    var faults: [String] {
        state.withLock { state in
            let refusals = state.refused > 0 ? ["\(state.refused) operations were refused"] : []
            return state.checker.faults.map(\.description) + refusals
        }
    }

    /// Resets the counts for a step.
    func begin() { state.withLock { $0.figures = Figures() } }

    /// The counts of the current step.
    var figures: Figures { state.withLock { $0.figures } }

    /// Records an operation that a device submits.
    func submit(_ id: String, by device: String, to entity: String, due: Int64) {
        state.withLock { state in
            state.checker.submit(id, by: device, to: entity)
            state.due[id] = due
            state.figures.submitted += 1
        }
    }

    /// Records the gateway's answer to a frame.
    func answered(taken: [String], refused: [String], at now: Int64) {
        state.withLock { state in
            for id in taken {
                // The result can come before the answer.
                if let due = state.due[id] { state.figures.toTaken.record(nanoseconds: now - due) }
            }
            state.refused += refused.count
        }
    }

    /// Records a call of the tenant, which accepts the operation.
    func call(_ question: TenantQuestion) {
        let now = elapsed
        state.withLock { state in
            _ = state.checker.call(
                question.operationID, by: question.deviceID, to: question.entityKey, saying: .accepted, at: now)
        }
    }

    /// Records a result at its device.
    func recordResult(_ id: String, to device: String, isAccepted: Bool, code: Int, at now: Int64) {
        let elapsed = elapsed
        state.withLock { state in
            state.checker.recordResult(id, to: device, isAccepted: isAccepted, code: code, at: elapsed)
            state.checker.confirm(id)
            guard let due = state.due.removeValue(forKey: id) else { return }
            state.figures.toResult.record(nanoseconds: now - due)
        }
    }
}
