/// The limits of an entity store. Each has a test that reaches it.
enum EntityLimits {
    /// The time for which a deletion's counter, and a cancelled operation without a result, are stored.
    static let kept: Duration = .seconds(30 * 24 * 3_600)
    /// The number of stored log records; the oldest records of the server are deleted first.
    static let logRecords = 10_000
    /// The number of submissions that one call of the submitter receives.
    static let submissionsAtOnce = 100
    /// The number of ids that `LocalKeyGenerator` reserves on disk at once; at most this many are lost when the app
    /// ends.
    static let localIDsAtOnce: Int64 = 64
    /// The number of keys in one range that a server can grant.
    static let keysInRange: Int64 = 1_000_000
    /// The number of children in one operation and the size of all its bodies in bytes; the service's limits.
    static let operationChildren = 100
    static let operationBytes = 196_608
    /// The estimated size of the log records in one operation, in bytes; below the limit of an operation.
    static let logRecordBytes = 180_000
    /// The key of an operation that concerns no row.
    static let noKey = "-"
    /// The largest value of a query's `skip` and `take`.
    static let rows = 1_000_000_000
}

extension Duration {
    /// Whole milliseconds.
    var milliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
