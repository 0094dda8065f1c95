/// A diagnosis task and its progress, for display in the app.
public struct DiagnosisReport: Sendable, Hashable {
    /// The operator's request.
    public let command: DiagnosisCommand
    /// The progress on this device.
    public let status: DiagnosisStatus
}
