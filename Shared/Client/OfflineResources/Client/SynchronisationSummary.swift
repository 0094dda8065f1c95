/// The results of one run that sent edits.
public struct SynchronisationSummary: Sendable, Hashable {
    /// Edits that the backend applied.
    public internal(set) var applied = 0
    /// Edits that have a conflict.
    public internal(set) var conflicts = 0
    /// Edits that were dropped because the backend's version won.
    public internal(set) var dropped = 0
    /// Edits that the backend refused. They stay stored, with `hasOfflineCommitError`.
    public internal(set) var refused = 0
    /// Edits that still wait: the backend could not be reached, or an earlier edit is not settled.
    public internal(set) var left = 0
}
