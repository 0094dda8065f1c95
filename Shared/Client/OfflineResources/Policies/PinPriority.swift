/// The priority of a local copy. Edits are sent and copies are refreshed in this order: `High`, `Normal`, not pinned,
/// `Low`. Copies with the priority `Low` are refreshed only when no edits wait (RES8).
public enum PinPriority: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
    case high = "High"
    case normal = "Normal"
    case low = "Low"

    /// The rank of a priority; 0 is the most urgent. Nil, not pinned, is between `Normal` and `Low`.
    static func rank(of pin: PinPriority?) -> Int {
        switch pin {
        case .high: 0
        case .normal: 1
        case nil: 2
        case .low: 3
        }
    }

    /// The more urgent priority is the lesser one, so it sorts first.
    public static func < (left: Self, right: Self) -> Bool { rank(of: left) < rank(of: right) }
}
