import Crypto
package import SyncModel

/// The chain of audit records: each contains the hash of the previous one and a hash over itself (SEC15). The SQL
/// function record_operation computes the same hashes.
package enum RecordChain {
    /// The previous hash of the first record.
    package static let origin = [UInt8](repeating: 0, count: 32)
    /// Identifies the hashed format and its version.
    private static let label = "mss-record-1"

    /// The correct hash of a record. Absent texts count as empty, which is no valid JSON.
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

/// Verifies audit records in the order of their numbers and finds the first fault. It keeps one hash, for a chain of
/// any length.
package struct RecordChainVerifier: Sendable {
    /// A fault in a chain.
    package enum Fault: Hashable, Sendable, CustomStringConvertible {
        /// A record is missing, or another one is in its place.
        case missing(number: Int64)
        /// The record does not follow the previous one: one of both was replaced.
        case unlinked(number: Int64)
        /// The content of the record was changed.
        case altered(number: Int64)
        /// The head of the chain does not match the last record.
        case wrongEnd(number: Int64)

        package var description: String {
            switch self {
            case .missing(let number): "record \(number) is missing"
            case .unlinked(let number): "record \(number) does not follow the one before it"
            case .altered(let number): "record \(number) was altered"
            case .wrongEnd(let number): "the head of the chain is not of record \(number), the last one"
            }
        }
    }

    /// The last verified record; nil before the first.
    package private(set) var last: RecordHead?
    private let first: Int64

    /// - Parameter first: the first number to verify; earlier records are not verified.
    package init(from first: Int64 = 1) {
        self.first = first
        if first == 1 { last = RecordHead(number: 0, hash: RecordChain.origin) }
    }

    /// Verifies the next record; nil without a fault. After a fault the verifier is not usable any more.
    package mutating func verify(_ record: OperationRecord) -> Fault? {
        let expected = last.map { $0.number + 1 } ?? first
        guard record.number == expected else { return .missing(number: expected) }
        guard last.map({ $0.hash == record.previousHash }) ?? true else { return .unlinked(number: expected) }
        guard record.hash == RecordChain.hash(of: record) else { return .altered(number: expected) }
        last = RecordHead(number: record.number, hash: record.hash)
        return nil
    }

    /// Compares the end of the chain with a head that was read together with the last page; nil if both match.
    package func end(at head: RecordHead) -> Fault? {
        guard let last, last.number >= head.number else { return .missing(number: (last?.number ?? first - 1) + 1) }
        return last == head ? nil : .wrongEnd(number: last.number)
    }
}
