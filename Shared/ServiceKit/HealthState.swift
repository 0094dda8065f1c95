import Synchronization

/// What a process says of its readiness: named conditions, all of which must hold, and whether it is draining.
package final class HealthState: Sendable {
    private struct State {
        var conditions: [String: Bool] = [:]
        var isDraining = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Notes a condition; one that was never noted does not count.
    package func set(_ condition: String, isReady: Bool) { state.withLock { $0.conditions[condition] = isReady } }

    /// The process takes no new work from now on.
    package func drain() { state.withLock { $0.isDraining = true } }

    /// Whether new work is refused because the process is about to end.
    package var isDraining: Bool { state.withLock { $0.isDraining } }

    /// Whether work may be sent here, and what says so.
    package var readiness: (isReady: Bool, conditions: [String: Bool]) {
        state.withLock { state in
            var conditions = state.conditions
            if state.isDraining { conditions["running"] = false }
            return (!conditions.isEmpty && conditions.values.allSatisfy(\.self), conditions)
        }
    }
}
