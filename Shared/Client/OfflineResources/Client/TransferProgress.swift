/// The progress of a file's transfer.
public struct TransferProgress: Sendable, Hashable {
    /// The bytes so far, with those of earlier calls that this call resumes.
    public let transferred: Int64
    /// The size of the whole file in bytes; nil: not known.
    public let total: Int64?

    /// From 0 to 1; nil while the size is not known.
    public var fraction: Double? {
        total.map { $0 == 0 ? 1 : Double(transferred) / Double($0) }
    }
}
