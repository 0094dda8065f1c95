/// What became of a push that a client service was given.
public enum PushOutcome: Sendable, Hashable {
    /// It has taken effect, and that is on the disk.
    case applied
    /// It is not newer than what is here: it came again, or late.
    case known
    /// It cannot be understood, or exceeds a limit: nothing has changed. For people who look for the fault.
    case refused(String)
}
