import MobileSync
import Synchronization

@testable import LocalEntities

/// An outbox in memory: it knows operations by their ids, and gives back what it has not sent.
final class FakeSubmitter: OperationSubmitter {
    struct Outage: Error {}

    private struct State {
        var known: Set<String> = []
        var waiting: [SyncOperation] = []
        var sent: Set<String> = []
        var users: [String?] = []
        var isDown = false
        var failsAfterTaking = false
    }

    private let state = Mutex(State())

    /// Roots that were taken, each once, in the order of their coming.
    var operations: [SyncOperation] { state.withLock { $0.waiting } }
    /// Calls of `submit`.
    var calls: Int { users.count }
    /// Whose operations they were, call by call.
    var users: [String?] { state.withLock { $0.users } }
    /// It takes nothing.
    var isDown: Bool {
        get { state.withLock { $0.isDown } }
        set { state.withLock { $0.isDown = newValue } }
    }
    /// It takes what it is given, and the caller never hears of it.
    var failsAfterTaking: Bool {
        get { state.withLock { $0.failsAfterTaking } }
        set { state.withLock { $0.failsAfterTaking = newValue } }
    }

    /// From now on these cannot be taken back.
    func send(_ ids: [String]) { state.withLock { $0.sent.formUnion(ids) } }

    /// Loses all that it has.
    func forget() {
        state.withLock {
            $0.known = []
            $0.waiting = []
        }
    }

    func submit(_ operations: [SyncOperation], ofUser userID: String?) async throws {
        try state.withLock { state in
            state.users.append(userID)
            guard !state.isDown else { throw Outage() }
            for operation in operations where state.known.insert(operation.id).inserted {
                state.waiting.append(operation)
            }
            if state.failsAfterTaking { throw Outage() }
        }
    }

    func cancelOperations(_ ids: [String], ofUser userID: String?) async throws -> [String] {
        try state.withLock { state in
            guard !state.isDown else { throw Outage() }
            let taken = ids.filter { id in !state.sent.contains(id) && state.waiting.contains { $0.id == id } }
            state.waiting.removeAll { taken.contains($0.id) }
            return taken
        }
    }
}
