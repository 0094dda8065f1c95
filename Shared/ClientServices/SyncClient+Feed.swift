public import Logging
public import MobileSync

extension SyncClient {
    /// Gives a service every push of its Sync ID, one at a time, until the task is cancelled; then it returns.
    ///
    /// A push that the service refuses is logged and confirmed: it would not be better the next time. One that cannot
    /// be stored is not confirmed, and comes again. A recall is only confirmed: what it takes back has taken effect, and
    /// a newer push undoes that.
    ///
    /// - Throws: `SyncError.store` when the client's own store cannot be read or written.
    public func feed(_ service: some PushReceiver, of bizType: String, logger: Logger) async throws {
        for try await oplog in oplogs(of: bizType) {
            do {
                if oplog.recalls == nil,
                    case .refused(let reason) = try service.take(oplog.payload, userID: oplog.userID)
                {
                    logger.warning("a client service refused a push", metadata: ["reason": "\(reason)"])
                }
            } catch {
                logger.error("a push could not be stored; it comes again", metadata: ["error": "\(error)"])
                continue
            }
            try await confirm(oplog)
        }
    }
}
