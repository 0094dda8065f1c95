/// The server's answer to a part of a log.
public enum DiagnosisAnswer: Sendable, Hashable {
    /// The server has stored the part.
    case taken
    /// The server accepts no more parts of this task; the text is the reason.
    case refused(String)
}
