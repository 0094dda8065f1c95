import Concurrency

/// Delivers events to a handler in the order of the commits, one at a time.
final class EventQueue: Sendable {
    private struct State {
        var waiting: [EntityEvent] = []
        var isDelivering = false
    }

    private let state = LockedValue(State())
    private let handler: any EntityHandler

    init(handler: any EntityHandler) { self.handler = handler }

    /// Appends events. Called inside the store's transaction, so that they have the order of the commits.
    func add(_ events: [EntityEvent]) { state.withLock { $0.waiting += events } }

    /// Delivers all queued events, outside a transaction. When another caller is delivering, that caller also delivers
    /// these events. So a handler that changes something receives the event after it has returned.
    func deliver() {
        guard beginDelivery() else { return }
        while let event = next() { event.deliver(to: handler) }
    }

    private func next() -> EntityEvent? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isDelivering = false
                return nil
            }
            return state.waiting.removeFirst()
        }
    }

    /// Starts the delivery, unless another caller is delivering.
    private func beginDelivery() -> Bool {
        state.withLock { state in
            defer { state.isDelivering = true }
            return !state.isDelivering
        }
    }
}
