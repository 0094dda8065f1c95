/// The part of a backlog that a receiver gets when its session opens (D10). In files, in the API and in audit records it
/// is `all` or the threshold.
package enum RepushMode: Hashable, Sendable {
    /// The whole backlog.
    case all
    /// Only this number of the newest valid, matching oplogs, within `thresholds`; older ones are discarded.
    case threshold(Int)

    package static let thresholds = 1...1_000

    /// The mode of a configuration that sets none.
    package static let standard = RepushMode.threshold(Limits.defaultThreshold)

    /// The value is nil for a text that is neither `all` nor a threshold.
    package init?(_ text: String) {
        if text == "all" {
            self = .all
        } else if let newest = Int(text), Self.thresholds.contains(newest) {
            self = .threshold(newest)
        } else {
            return nil
        }
    }

    /// The mode as text: `all` or the threshold.
    package var text: String {
        switch self {
        case .all: "all"
        case .threshold(let newest): "\(newest)"
        }
    }

    /// - Parameter newest: the threshold as bus messages and the store have it; 0 for `all`.
    package init(newest: Int) { self = newest == 0 ? .all : .threshold(newest) }

    /// The threshold as bus messages and the store have it; 0 for `all`.
    package var newest: Int {
        switch self {
        case .all: 0
        case .threshold(let newest): newest
        }
    }
}

extension RepushMode: Codable {
    /// Reads `"all"` or a threshold as a number.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let newest = try? container.decode(Int.self), Self.thresholds.contains(newest) {
            self = .threshold(newest)
        } else if try container.decode(String.self) == "all" {
            self = .all
        } else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "repush is \"all\" or a number from 1 to 1000")
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .all: try container.encode("all")
        case .threshold(let newest): try container.encode(newest)
        }
    }
}
