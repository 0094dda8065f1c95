import Synchronization

/// The outcome of a notice's non-persistent entries.
struct NoticeReplyEntries: Hashable, Sendable {
    /// A session has sent them, or holds them until it has read the oplogs before them.
    var held: [Int64] = []
    /// An eligible session missed them: it is past their ids, or has no free capacity.
    var missed: [Int64] = []
}

/// Collects the outcome of a notice's entries over all sessions.
final class NoticeReplyCollector: Sendable {
    private struct State {
        var sessionsLeft: Int
        var held: Set<Int64> = []
        var missed: Set<Int64> = []

        var taken: NoticeReplyEntries {
            NoticeReplyEntries(held: held.sorted(), missed: missed.subtracting(held).sorted())
        }
    }

    private let state: Mutex<State>
    private let whenComplete: @Sendable (NoticeReplyEntries) -> Void

    /// - Parameter whenComplete: called once, when every session has replied; at once without sessions.
    init(sessions: Int, whenComplete: @escaping @Sendable (NoticeReplyEntries) -> Void) {
        state = Mutex(State(sessionsLeft: sessions))
        self.whenComplete = whenComplete
        if sessions == 0 { whenComplete(NoticeReplyEntries()) }
    }

    /// Adds the outcome of one session.
    func add(_ entries: NoticeReplyEntries) {
        let complete = state.withLock { state -> NoticeReplyEntries? in
            state.sessionsLeft -= 1
            state.held.formUnion(entries.held)
            state.missed.formUnion(entries.missed)
            return state.sessionsLeft == 0 ? state.taken : nil
        }
        if let complete { whenComplete(complete) }
    }
}
