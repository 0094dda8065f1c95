/// The reason that a device does not upload a requested log.
public enum DiagnosisRefusal: Error, Sendable, Hashable, Codable {
    /// The log is larger than the command's limit.
    case tooLarge
    /// No line matches the requested time and level, or the lines have been deleted since.
    case nothingThere
    /// The log cannot be read, or the collected log cannot be written.
    case unreadable
    /// The server has refused the upload; the text is its reason.
    case byServer(String)
}
