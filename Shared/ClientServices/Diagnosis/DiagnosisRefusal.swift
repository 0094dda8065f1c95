/// Why a device does not send what was asked for.
public enum DiagnosisRefusal: Error, Sendable, Hashable, Codable {
    /// There is more than the command's limit.
    case tooLarge
    /// Nothing was logged at that time and level, or it has been deleted since.
    case nothingThere
    /// The log cannot be read, or what was collected cannot be written.
    case unreadable
    /// The server does not want it any more; its words.
    case byServer(String)
}
