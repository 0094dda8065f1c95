/// What the server says to a part.
public enum DiagnosisAnswer: Sendable, Hashable {
    /// It has the part for good.
    case taken
    /// It does not want this task's log any more; why, in words.
    case refused(String)
}
