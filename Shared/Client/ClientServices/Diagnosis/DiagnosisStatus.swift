/// The progress of a diagnosis task on this device (SVC6).
public enum DiagnosisStatus: Sendable, Hashable {
    /// The task waits for older tasks.
    case waiting
    /// The device is reading the log.
    case collecting
    /// The log is collected, and the task does not allow the current network. `taken` parts of `total` are uploaded.
    case waitingForNetwork(taken: Int, total: Int)
    /// The device is uploading. `taken` parts of `total` are uploaded.
    case uploading(taken: Int, total: Int)
    /// All parts are uploaded.
    case done
    /// The device uploads nothing.
    case refused(DiagnosisRefusal)
    /// The operator has deleted the task.
    case deleted
}
