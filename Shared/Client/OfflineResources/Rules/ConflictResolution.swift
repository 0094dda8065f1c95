/// The decision about a conflict.
public enum ConflictResolution: Sendable, Hashable {
    /// The local version replaces the backend's version.
    case keepMine
    /// The local edits are dropped.
    case takeTheirs
    /// This JSON body replaces both versions.
    case merged([UInt8])
}
