import MobileSync
import Synchronization

@testable import LocalEntities

/// An outbox in memory: it recognises operations by their ids, and returns those that it has not sent.
final class FakeSubmitter: OperationSubmitter {
    struct Outage: Error {}

    private struct State {
        var known: Set<String> = []
        var waiting: [SyncOperation] = []
        var sent: Set<String> = []
        var users: [String?] = []
        var isDown = false
        var failsAfterTaking = false
        var pendingParameters: Set<String> = []
    }

    private let state = Mutex(State())

    /// The submitted root operations, each once, in the order of submission.
    var operations: [SyncOperation] { state.withLock { $0.waiting } }
    /// The number of calls of `submit`.
    var calls: Int { users.count }
    /// The user of each call.
    var users: [String?] { state.withLock { $0.users } }
    /// Refuses all operations.
    var isDown: Bool {
        get { state.withLock { $0.isDown } }
        set { state.withLock { $0.isDown = newValue } }
    }
    /// Stores the operations, but throws.
    var failsAfterTaking: Bool {
        get { state.withLock { $0.failsAfterTaking } }
        set { state.withLock { $0.failsAfterTaking = newValue } }
    }

    /// The Sync IDs with parameters that the server has not answered.
    var pendingParameters: Set<String> {
        get { state.withLock { $0.pendingParameters } }
        set { state.withLock { $0.pendingParameters = newValue } }
    }

    /// Marks these operations as sent: they can no longer be cancelled.
    func send(_ ids: [String]) { state.withLock { $0.sent.formUnion(ids) } }

    /// Loses all operations.
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

    func hasPendingParameters(of bizTypes: Set<String>, ofUser userID: String?) throws -> Bool {
        !pendingParameters.isDisjoint(with: bizTypes)
    }
}
