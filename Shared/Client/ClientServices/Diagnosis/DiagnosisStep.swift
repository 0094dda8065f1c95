/// The next step of the diagnosis work.
enum DiagnosisStep: Sendable, Hashable {
    /// Collect the log.
    case collect(DiagnosisTask)
    /// Upload the part with this number, from 1.
    case send(DiagnosisTask, DiagnosisBundle, part: Int)
    /// Report to the server that the device uploads nothing.
    case reportRefusal(DiagnosisTask, DiagnosisRefusal)
    /// Wait for a change or for the given time; nil: for a change only.
    case wait(until: ContinuousClock.Instant?)
}
