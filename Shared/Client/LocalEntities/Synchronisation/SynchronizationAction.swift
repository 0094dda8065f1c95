/// The app's decision at a step of a synchronisation (ENT3).
public enum SynchronizationAction: String, Sendable, Hashable {
    /// Continue. (`continue` is a reserved word of Swift.)
    case proceed = "CONTINUE"
    /// End the connection, and make no other before the next `beginSynchronize`.
    case cancel = "CANCEL"
}
