/// The service that owns an item. The raw values are stored.
enum ServiceArea: String {
    /// Key-value pairs of the app. The owner is the user, or empty for common values.
    case values
    /// The user who signed in last.
    case users
    /// The last valid set of switches.
    case switches
    /// A user's badge tree.
    case badges
    /// Taps that are not reported yet.
    case badgeTaps = "badge_taps"
    /// Diagnosis tasks.
    case diagnosis
}
