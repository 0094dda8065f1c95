public import Logging
public import MobileSync

extension SyncClient {
    /// Passes every push of a Sync ID to a client service, one at a time, until the task is cancelled, then returns.
    ///
    /// A push that the service refuses is logged and confirmed, because a repeat would fail in the same way. A push
    /// that cannot be stored is not confirmed and arrives again. A recall is only confirmed: the recalled push has
    /// taken effect, and only a newer push can undo it.
    ///
    /// - Throws: `SyncError.store` when the client's local store cannot be read or written.
    public func feed(_ service: some PushReceiver, of bizType: String, logger: Logger) async throws {
        for try await oplog in oplogs(of: bizType) {
            do {
                if oplog.recalls == nil,
                    case .refused(let reason) = try service.take(oplog.payload, userID: oplog.userID)
                {
                    logger.warning(
                        "a client service refused a push; it is confirmed", metadata: ["reason": "\(reason)"])
                }
            } catch {
                logger.error("a push could not be stored; it arrives again", metadata: ["error": "\(error)"])
                continue
            }
            try await confirm(oplog)
        }
    }
}
