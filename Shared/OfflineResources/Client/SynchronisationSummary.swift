/// What became of offline edits in one run.
public struct SynchronisationSummary: Sendable, Hashable {
    /// The service has them.
    public internal(set) var applied = 0
    /// Somebody has to decide.
    public internal(set) var conflicts = 0
    /// The service won.
    public internal(set) var dropped = 0
    /// The service refused them; they are kept, with `hasOfflineCommitError`.
    public internal(set) var refused = 0
    /// They wait still: the service could not be reached, or they wait behind others.
    public internal(set) var left = 0
}
