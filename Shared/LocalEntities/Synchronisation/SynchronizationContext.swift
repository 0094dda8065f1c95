/// Where a synchronisation is, for `EntityHandler.onSynchronize` (spec, two-way §2).
public struct SynchronizationContext: Sendable, Hashable {
    /// Its steps.
    public enum Status: String, Sendable, Hashable, CaseIterable {
        case starting = "STARTING"
        case uploading = "UPLOADING"
        case downloading = "DOWNLOADING"
        case finishing = "FINISHING"
        case error = "ERROR"
    }

    /// The step that it has come to.
    public let status: Status
    /// What `beginSynchronize` was given; empty: all groups.
    public let groups: [String]
    /// What `beginSynchronize` was given; empty when the client began by itself.
    public let userContext: String
    /// What went wrong, with `error`; else empty.
    public let reason: String
}
