import Concurrency
public import MobileSync

/// Steps of a synchronisation.
extension EntityStore {
    /// Asks the handler at each step of a connection whether the synchronisation continues. Call it in
    /// `SyncClientConfiguration.onSynchronize` (ENT3).
    ///
    /// The client is made before the store, so its configuration must reach the store through a variable that is set
    /// later.
    public func onSynchronize(_ step: SyncStep) -> SyncDecision {
        let status: SynchronizationContext.Status
        var reason = ""
        switch step {
        case .starting: status = .starting
        case .uploading: status = .uploading
        case .downloading: status = .downloading
        case .finishing: status = .finishing
        case .error(let text): (status, reason) = (.error, text)
        }
        let request = synchronization.withLock { $0 }
        let context = SynchronizationContext(
            status: status, groups: request.groups, userContext: request.userContext, reason: reason)
        return handler.onSynchronize(context) == .cancel ? .cancel : .proceed
    }
}
