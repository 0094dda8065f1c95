import Synchronization

/// Gathers, over the sessions of a notice, which of its entries were taken by at least one of them.
final class TakenCount: Sendable {
    private struct State {
        var sessionsLeft: Int
        var taken: Set<Int64> = []
    }

    private let state: Mutex<State>
    private let whenComplete: @Sendable ([Int64]) -> Void

    /// - Parameter whenComplete: called once every session has been asked; at once when there is none.
    init(sessions: Int, whenComplete: @escaping @Sendable ([Int64]) -> Void) {
        state = Mutex(State(sessionsLeft: sessions))
        self.whenComplete = whenComplete
        if sessions == 0 { whenComplete([]) }
    }

    /// One session has taken these.
    func add(_ ids: [Int64]) {
        let complete = state.withLock { state -> [Int64]? in
            state.sessionsLeft -= 1
            state.taken.formUnion(ids)
            return state.sessionsLeft == 0 ? state.taken.sorted() : nil
        }
        if let complete { whenComplete(complete) }
    }
}
