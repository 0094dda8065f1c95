/// What was collected for a task: one file that does not change any more, sent in parts.
struct DiagnosisBundle: Sendable, Hashable, Codable {
    /// Its name, without a folder.
    let file: String
    let bytes: Int
    /// Of the whole file, in lower-case hex.
    let sha256: String
    /// Bytes of each part but the last.
    let partBytes: Int

    /// Parts; at least one.
    var parts: Int { max((bytes + partBytes - 1) / partBytes, 1) }
}
