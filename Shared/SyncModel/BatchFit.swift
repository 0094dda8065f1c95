/// How a batch `{after, upto}` relates to a receiver's position: the one rule for gaps and repeats (design §1).
package enum BatchFit: Hashable, Sendable {
    /// Continues the position; entries at or below it are repeats and are dropped.
    case applies
    /// Ends at or below the position: all of it is known.
    case known
    /// Begins above the position: something in between is missing, read from the position.
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
