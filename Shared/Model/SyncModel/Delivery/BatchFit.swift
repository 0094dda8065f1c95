/// Compares a batch `{after, upto}` with a receiver's position: the one rule for gaps and repeats
/// (Design.md#notices-and-pages).
package enum BatchFit: Hashable, Sendable {
    /// Continues the position. Entries at or below the position are repeats and are dropped.
    case applies
    /// Ends at or below the position: the receiver has all of it.
    case known
    /// Begins above the position. The missing oplogs must be read from the position on.
    case gap

    /// Compares a batch that covers ids in (after, upto] with a position.
    package init(position: OplogID, after: OplogID, upto: OplogID) {
        if upto <= position {
            self = .known
        } else if after <= position {
            self = .applies
        } else {
            self = .gap
        }
    }
}
