/// How many of the devices that a push is for must be given it.
package enum HistoryReach: Hashable, Sendable, Codable {
    /// Each of them.
    case everyone
    /// One at least: the user has the data once, and it moves on to another device where that is in doubt.
    case anyone
    /// One and no other: as `anyone`, while nothing fails.
    case one
    /// This device, and no other: a rule permits only this one.
    case device(String)
    /// Each of them whose session is open from before the call until the push is given: a threshold passes over only
    /// what was stored before a session opened.
    case connected
    /// It may lapse: it is stored nowhere, ends soon, or a threshold passes it over.
    case optional
    /// None may: a rule passes it over.
    case nobody
}
