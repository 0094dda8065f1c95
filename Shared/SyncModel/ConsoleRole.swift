/// What a person may do at the console; each includes those before it (spec C8, reliability SEC14).
package enum ConsoleRole: Int16, Comparable, Sendable, CaseIterable {
    /// Looks.
    case viewer = 1
    /// Changes configurations, pushes, recalls, disconnects.
    case operations = 2
    /// Keys, signature, validator, accounts; for the service as a whole also instances.
    case administrator = 3

    /// As the API and the pages spell it.
    package var word: String {
        switch self {
        case .viewer: "viewer"
        case .operations: "operator"
        case .administrator: "administrator"
        }
    }

    package init?(word: String) {
        guard let role = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = role
    }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
