/// What became of a change of the control data.
package enum ControlOutcome: Hashable, Sendable {
    /// Made, recorded, and in force from this version on.
    case made(version: Int64)
    /// Everything is so already: nothing was recorded, and there is no new version.
    case unchanged(version: Int64)
    /// The change's condition did not hold.
    case refused
    /// Somebody else changed the same meanwhile: it no longer has the revision given.
    case stale

    /// The version in which what was asked for is in force; nil when it was not done.
    package var version: Int64? {
        switch self {
        case .made(let version), .unchanged(let version): version
        case .refused, .stale: nil
        }
    }
}
