import SyncModel
import SyncStore

/// Writes audit records for actions that change nothing, such as a failed sign-in. Changes write their own records.
struct AuditRecorder: Sendable {
    let database: Database

    /// Records an action on an account.
    func record(_ action: OperationAction, by actor: OperationActor, subject: String) async throws(ConsoleFault) {
        _ = try await database.run(
            RecordStore.add(OperationEntry(actor: actor, action: action, instanceID: nil, subject: subject)))
    }
}
