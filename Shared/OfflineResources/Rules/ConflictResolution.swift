/// How somebody decides about a conflict.
public enum ConflictResolution: Sendable, Hashable {
    /// The local version takes the place of the service's.
    case keepMine
    /// The local edits are dropped.
    case takeTheirs
    /// This body takes the place of both.
    case merged([UInt8])
}
