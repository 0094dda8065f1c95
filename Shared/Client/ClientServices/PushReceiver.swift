/// A client service that is updated by the pushes of one Sync ID. `SyncClient.feed(_:of:logger:)` passes the pushes to
/// it.
public protocol PushReceiver: Sendable {
    /// Applies the payload of one push. When the call returns, the change is on disk.
    ///
    /// - Parameters:
    ///   - payload: the payload of the oplog.
    ///   - userID: the user that the push is for; nil for a device push and a global push.
    /// - Throws: `ClientServiceError.store`. Nothing is changed then, and the caller must pass the push again.
    func take(_ payload: [UInt8], userID: String?) throws(ClientServiceError) -> PushOutcome
}
