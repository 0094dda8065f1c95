/// Where an operation is that was taken from a device; the raw values stand in the database.
package enum DeviceOperationState: Int16, Sendable, CaseIterable {
    /// Waits for its turn, or for the tenant.
    case waiting = 1
    /// The tenant has answered, or was given up; the devices are still to be told.
    case answered = 2
    /// The tenant has accepted it, and the devices have been told.
    case accepted = 3
    /// The tenant has refused it, and the device has been told.
    case refused = 4
    /// It was given up, and the device has been told; an operator may have it done after all.
    case dead = 5

    /// The state in commands and in the API.
    package var word: String {
        switch self {
        case .waiting: "waiting"
        case .answered: "answered"
        case .accepted: "accepted"
        case .refused: "refused"
        case .dead: "dead"
        }
    }

    /// The state of a word; nil when there is none.
    package init?(word: String) {
        guard let state = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = state
    }
}
