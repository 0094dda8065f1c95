/// The result of a roll-out command; the raw values are those of the store's SQL functions.
package enum RolloutOutcome: String, Hashable, Sendable, CaseIterable {
    /// Done, and recorded.
    case done
    /// The requested state already existed: nothing changed.
    case unchanged
    case missing
    case offline
    case taken
    case paused
    case stopped
    case completed
    case ahead
    case expired

    /// Whether the requested state exists now.
    package var isSuccess: Bool { self == .done || self == .unchanged }

    /// The reason of a refusal and its remedy; empty after a success.
    package var refusal: String {
        switch self {
        case .done, .unchanged: ""
        case .missing: "there is no such roll-out"
        case .offline:
            "only a global configuration that is online, of an enabled instance, takes a stage; set it online"
        case .taken: "another push has the unique data id of this stage; start a roll-out with another id"
        case .paused: "it is paused; resume it first"
        case .stopped: "it is stopped for good; start another one"
        case .completed: "every stage was made; there is nothing to widen, pause or resume"
        case .ahead: "the stage before it was not made yet; widen stage by stage"
        case .expired: "its validity has ended; stop it, and start another one"
        }
    }
}
