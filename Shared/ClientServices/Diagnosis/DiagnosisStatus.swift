/// How far a diagnosis task has come on this device (spec, two-way §3).
public enum DiagnosisStatus: Sendable, Hashable {
    /// Its turn has not come.
    case waiting
    /// The log is being read.
    case collecting
    /// Collected, and not on a network that it may use; so many parts have been taken.
    case waitingForNetwork(taken: Int, total: Int)
    /// So many parts have been taken.
    case uploading(taken: Int, total: Int)
    /// All parts have been taken.
    case done
    /// Nothing is sent.
    case refused(DiagnosisRefusal)
    /// The operator has deleted it.
    case deleted
}
