/// A step of a synchronisation, for `EntityHandler.onSynchronize` (ENT3).
public struct SynchronizationContext: Sendable, Hashable {
    /// The steps.
    public enum Status: String, Sendable, Hashable, CaseIterable {
        case starting = "STARTING"
        case uploading = "UPLOADING"
        case downloading = "DOWNLOADING"
        case finishing = "FINISHING"
        case error = "ERROR"
    }

    /// The current step.
    public let status: Status
    /// The groups of `beginSynchronize`; empty: all groups.
    public let groups: [String]
    /// The context of `beginSynchronize`; empty when the client connected on its own.
    public let userContext: String
    /// The error text with `error`; otherwise empty.
    public let reason: String
}
