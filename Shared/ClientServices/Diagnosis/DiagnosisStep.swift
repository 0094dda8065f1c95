/// What to do next for the diagnosis tasks.
enum DiagnosisStep: Sendable, Hashable {
    /// Read the log.
    case collect(DiagnosisTask)
    /// Send the part of this number, from 1.
    case send(DiagnosisTask, DiagnosisBundle, part: Int)
    /// Tell the server that nothing comes.
    case tell(DiagnosisTask, DiagnosisRefusal)
    /// Nothing, until something changes, or that time has come; nil: until something changes.
    case wait(until: ContinuousClock.Instant?)
}
