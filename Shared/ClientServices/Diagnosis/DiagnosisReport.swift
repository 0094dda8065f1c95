/// A diagnosis task as an app may show it.
public struct DiagnosisReport: Sendable, Hashable {
    /// What the operator wants.
    public let command: DiagnosisCommand
    /// How far it has come.
    public let status: DiagnosisStatus
}
