/// The result of a change of the control data.
package enum ControlOutcome: Hashable, Sendable {
    /// Made, recorded, and in force from this version on.
    case made(version: Int64)
    /// Everything has the requested value already: nothing was recorded, and there is no new version.
    case unchanged(version: Int64)
    /// The change's condition did not hold.
    case refused
    /// Another change came first: the row no longer has the given revision.
    case stale

    /// The version in which the request is in force; nil: it was not done.
    package var version: Int64? {
        switch self {
        case .made(let version), .unchanged(let version): version
        case .refused, .stale: nil
        }
    }
}
