/// How many of the devices that a push is for must be given it.
package enum HistoryReach: Hashable, Sendable, Codable {
    /// Each of them.
    case everyone
    /// One at least: the user has the data once, and it moves on to another device where that is in doubt.
    case anyone
    /// One and no other: as `anyone`, while nothing fails.
    case one
    /// It may lapse: it is stored nowhere, ends soon, or a threshold passes it over.
    case optional
    /// None may: a rule passes it over.
    case nobody
}
