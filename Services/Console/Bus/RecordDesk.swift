import SyncModel
import SyncStore

/// Puts into the operation records what is no change: changes of control data and accounts make their own.
struct RecordDesk: Sendable {
    let database: Database

    /// Records something that somebody did with an account.
    func note(_ action: OperationAction, by actor: OperationActor, subject: String) async throws(ConsoleFault) {
        _ = try await database.run(
            RecordStore.add(OperationEntry(actor: actor, action: action, instanceID: nil, subject: subject)))
    }
}
