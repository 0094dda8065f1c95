/// How urgently a local copy is refreshed: `High` first, then `Normal`, and `Low` when no edits wait to be sent (spec,
/// two-way §1). What is not pinned counts as `Normal`.
public enum PinPriority: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
    case high = "High"
    case normal = "Normal"
    case low = "Low"

    /// 0 is the most urgent.
    var rank: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }

    /// The more urgent is less: it comes first.
    public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}
