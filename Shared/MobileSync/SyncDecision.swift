/// What an app answers to a step of a synchronisation.
public enum SyncDecision: Sendable, Hashable {
    /// Go on.
    case proceed
    /// End the connection; there is no other until `SyncClient.connect()`. What is stored stays.
    case cancel
}
