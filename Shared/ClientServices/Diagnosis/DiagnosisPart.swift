/// One part of what was collected for a task.
public struct DiagnosisPart: Sendable, Hashable {
    /// The task's id.
    public let taskID: String
    /// Which run of the task it is.
    public let run: Int
    /// The name of the whole file, such as `t17-1.log`.
    public let file: String
    /// Bytes of the whole file.
    public let fileBytes: Int
    /// Of the whole file, in lower-case hex. When it is not that of the parts before, those are worth nothing: the file
    /// was lost on the device and collected anew.
    public let fileSHA256: String
    /// From 1.
    public let number: Int
    /// Parts of the file.
    public let total: Int
    /// The part itself.
    public let bytes: [UInt8]
    /// Of the part, in lower-case hex.
    public let sha256: String
}
