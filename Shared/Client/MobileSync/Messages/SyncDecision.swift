/// The app's decision on a step of a synchronisation.
public enum SyncDecision: Sendable, Hashable {
    /// Continue.
    case proceed
    /// End the connection. The client connects again after `SyncClient.connect()`. Stored data stays.
    case cancel
}
