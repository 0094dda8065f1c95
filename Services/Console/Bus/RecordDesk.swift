import SyncModel
import SyncStore

/// Puts into the operation records what is no change: changes of control data and accounts make their own.
struct RecordDesk: Sendable {
    let database: Database

    /// Records something.
    ///
    /// - Parameters:
    ///   - before: as JSON, what there was; never with a secret or a payload.
    ///   - after: likewise, what there is now.
    @discardableResult
    func note(
        _ action: OperationAction, by actor: OperationActor, at instanceID: InstanceID? = nil, subject: String,
        before: String? = nil, after: String? = nil
    ) async throws(ConsoleFault) -> Int64 {
        try await database.run(
            RecordStore.add(
                OperationEntry(
                    actor: actor, action: action, instanceID: instanceID, subject: subject, before: before,
                    after: after)))
    }
}
