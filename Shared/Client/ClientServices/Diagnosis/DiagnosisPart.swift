/// One part of the collected log of a task.
public struct DiagnosisPart: Sendable, Hashable {
    /// The task's id.
    public let taskID: String
    /// The run of the task.
    public let run: Int
    /// The name of the whole file, such as `t17-1.log`.
    public let file: String
    /// The size of the whole file, in bytes.
    public let fileBytes: Int
    /// SHA-256 of the whole file, in lower-case hex. When it differs from that of earlier parts, discard them: the
    /// device has lost the file and collected the log again.
    public let fileSHA256: String
    /// The number of the part, from 1.
    public let number: Int
    /// The number of parts of the file.
    public let total: Int
    /// The content of the part.
    public let bytes: [UInt8]
    /// SHA-256 of the part, in lower-case hex.
    public let sha256: String
}
