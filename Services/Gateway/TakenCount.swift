import Synchronization

/// Entries of a notice that are stored nowhere, by what became of them.
struct TakenEntries: Hashable, Sendable {
    /// A session has sent them, or keeps them until what lies before them has been read.
    var held: [Int64] = []
    /// An eligible session cannot be given them any more: it has gone past them, or has no room.
    var missed: [Int64] = []
}

/// Gathers, over the sessions of a notice, which of its entries were taken by at least one of them.
final class TakenCount: Sendable {
    private struct State {
        var sessionsLeft: Int
        var held: Set<Int64> = []
        var missed: Set<Int64> = []

        var taken: TakenEntries {
            TakenEntries(held: held.sorted(), missed: missed.subtracting(held).sorted())
        }
    }

    private let state: Mutex<State>
    private let whenComplete: @Sendable (TakenEntries) -> Void

    /// - Parameter whenComplete: called once every session has been asked; at once when there is none.
    init(sessions: Int, whenComplete: @escaping @Sendable (TakenEntries) -> Void) {
        state = Mutex(State(sessionsLeft: sessions))
        self.whenComplete = whenComplete
        if sessions == 0 { whenComplete(TakenEntries()) }
    }

    /// One session has said what became of the entries.
    func add(_ entries: TakenEntries) {
        let complete = state.withLock { state -> TakenEntries? in
            state.sessionsLeft -= 1
            state.held.formUnion(entries.held)
            state.missed.formUnion(entries.missed)
            return state.sessionsLeft == 0 ? state.taken : nil
        }
        if let complete { whenComplete(complete) }
    }
}
