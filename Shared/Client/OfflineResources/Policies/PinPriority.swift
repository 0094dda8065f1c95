/// The refresh priority of a local copy: `High` first, then `Normal`; `Low` only when no edits wait (RES8). A copy that
/// is not pinned counts as `Normal`.
public enum PinPriority: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
    case high = "High"
    case normal = "Normal"
    case low = "Low"

    /// The rank; 0 is the most urgent.
    var rank: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }

    /// The more urgent priority is the lesser one, so it sorts first.
    public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}
