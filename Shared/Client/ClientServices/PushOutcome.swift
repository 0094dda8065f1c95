/// The result of applying a push.
public enum PushOutcome: Sendable, Hashable {
    /// The push has taken effect and is on disk.
    case applied
    /// The push is not newer than the current data: it is a repeat, or it arrived late. Nothing is changed.
    case known
    /// The push has a wrong format or exceeds a limit. Nothing is changed. The text is the reason, for developers.
    case refused(String)
}
