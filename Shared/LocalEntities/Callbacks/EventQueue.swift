import Synchronization

/// Tells a handler of events in the order in which they were committed, one at a time.
final class EventQueue: Sendable {
    private struct State {
        var waiting: [EntityEvent] = []
        var isTelling = false
    }

    private let state = Mutex(State())
    private let handler: any EntityHandler

    init(handler: any EntityHandler) { self.handler = handler }

    /// Puts events at the end; in the store's turn, so that they have the order of the commits.
    func add(_ events: [EntityEvent]) { state.withLock { $0.waiting += events } }

    /// Tells all that wait, out of the store's turn; when somebody is at it, that one tells these too. So a handler
    /// that changes something is told of it after it has returned.
    func tell() {
        guard take() else { return }
        while let event = next() { event.tell(handler) }
    }

    private func next() -> EntityEvent? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isTelling = false
                return nil
            }
            return state.waiting.removeFirst()
        }
    }

    /// Takes the telling, unless somebody has it.
    private func take() -> Bool {
        state.withLock { state in
            defer { state.isTelling = true }
            return !state.isTelling
        }
    }
}
