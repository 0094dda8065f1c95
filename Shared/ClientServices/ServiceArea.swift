/// Whose items they are; raw values are stored.
enum ServiceArea: String {
    /// Key-value pairs of the app; owner: the user, or nobody.
    case values
    /// Who signed in last.
    case users
    /// The last set of switches that was good.
    case switches
    /// A user's badge tree.
    case badges
    /// Taps that were not reported yet.
    case badgeTaps = "badge_taps"
    /// Diagnosis tasks.
    case diagnosis
}
