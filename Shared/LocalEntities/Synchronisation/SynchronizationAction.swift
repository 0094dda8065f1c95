/// What an app answers to a step of a synchronisation (spec, two-way §2).
public enum SynchronizationAction: String, Sendable, Hashable {
    /// Go on. (`continue` is a word of Swift's.)
    case proceed = "CONTINUE"
    /// End the connection; there is no other until the next `beginSynchronize`.
    case cancel = "CANCEL"
}
