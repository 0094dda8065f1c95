/// What became of something that was asked of a roll-out; the words are those that the store's functions answer with.
package enum RolloutOutcome: String, Hashable, Sendable, CaseIterable {
    /// Done, and recorded.
    case done
    /// Everything was so already: nothing changed.
    case unchanged
    case missing
    case offline
    case taken
    case paused
    case stopped
    case completed
    case ahead
    case expired

    /// Whether what was asked for holds now.
    package var isSuccess: Bool { self == .done || self == .unchanged }

    /// Why it was refused and what to do; empty when it was not.
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
