import Crypto
package import SyncModel

/// How operation records are chained: each has the hash of the one before, and one over itself (reliability SEC15).
/// The store's function record_operation makes them in the same way.
package enum RecordChain {
    /// What stands before the first record.
    package static let origin = [UInt8](repeating: 0, count: 32)
    /// Names what is hashed, and this form of it.
    private static let label = "mss-record-1"

    /// The hash that a record has to have. What is absent counts as empty: no JSON is.
    package static func hash(of record: OperationRecord) -> [UInt8] {
        let parts: [[UInt8]] = [
            Array(label.utf8), record.previousHash, bytes(of: record.number), bytes(of: record.recordedAtMicroseconds),
            Array(record.actor.utf8), Array(record.source.utf8), bytes(of: record.actionCode),
            Array(record.instanceID.text.utf8), Array(record.subject.utf8), Array((record.before ?? "").utf8),
            Array((record.after ?? "").utf8),
        ]
        return Array(SHA256.hash(data: LengthPrefixed.bytes(of: parts)))
    }

    private static func bytes(of number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}
