/// The collected log of a task: one file that does not change and that is uploaded in parts.
struct DiagnosisBundle: Sendable, Hashable, Codable {
    /// The file's name, without a folder.
    let file: String
    let bytes: Int
    /// SHA-256 of the whole file, in lower-case hex.
    let sha256: String
    /// The size of each part except the last, in bytes.
    let partBytes: Int

    /// The number of parts; at least one.
    var parts: Int { max((bytes + partBytes - 1) / partBytes, 1) }
}
