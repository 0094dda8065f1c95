/// Bounds of an entity store; each has a test that reaches it.
enum EntityLimits {
    /// How long the counter of a deletion, and a cancelled operation without an answer, are kept.
    static let kept: Duration = .seconds(30 * 24 * 3_600)
    /// Log records that are kept; the oldest of the server's go first.
    static let logRecords = 10_000
    /// Submissions that are given to the submitter at once.
    static let submissionsAtOnce = 100
    /// Ids that `LocalKeyGenerator` takes from the disk at once; so many are lost at most when the app ends.
    static let localIDsAtOnce: Int64 = 64
    /// Keys that a server may grant in one range.
    static let keysInRange: Int64 = 1_000_000
    /// Rows that go with another in one operation, and bytes of all their bodies; as the service has it.
    static let operationChildren = 100
    static let operationBytes = 196_608
    /// Log records in one operation, in bytes as they are at the most; less than an operation may have.
    static let logRecordBytes = 180_000
    /// The key of an operation that is about no entity.
    static let noKey = "-"
    /// Rows that a query may skip or take.
    static let rows = 1_000_000_000
}

extension Duration {
    /// Whole milliseconds.
    var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
