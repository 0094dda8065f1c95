package import SyncModel

/// Looks at operation records in the order of their numbers, without gaps, and finds the first that is not as it was
/// recorded. It keeps one record's hash, however long the chain is.
package struct RecordChainVerifier: Sendable {
    /// What is wrong with a chain.
    package enum Fault: Hashable, Sendable, CustomStringConvertible {
        /// A record is missing, or stands where another should.
        case missing(number: Int64)
        /// The record does not follow the one before: one of the two was replaced.
        case unlinked(number: Int64)
        /// Something of the record was changed.
        case altered(number: Int64)
        /// The chain's head is not of this record, which is the last one.
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

    /// The last record that was looked at; nil before the first.
    package private(set) var last: RecordHead?
    private let first: Int64

    /// - Parameter first: the number to begin with; what stands before it is taken as it is.
    package init(from first: Int64 = 1) {
        self.first = first
        if first == 1 { last = RecordHead(number: 0, hash: RecordChain.origin) }
    }

    /// Looks at the next record; nil when nothing is wrong. After a fault the verifier is of no use any more.
    package mutating func take(_ record: OperationRecord) -> Fault? {
        let expected = last.map { $0.number + 1 } ?? first
        guard record.number == expected else { return .missing(number: expected) }
        guard last.map({ $0.hash == record.previousHash }) ?? true else { return .unlinked(number: expected) }
        guard record.hash == RecordChain.hash(of: record) else { return .altered(number: expected) }
        last = RecordHead(number: record.number, hash: record.hash)
        return nil
    }

    /// Whether the chain ends where its head says, read at the same moment as the last page; nil when it does.
    package func end(at head: RecordHead) -> Fault? {
        guard let last, last.number >= head.number else { return .missing(number: (last?.number ?? first - 1) + 1) }
        return last == head ? nil : .wrongEnd(number: last.number)
    }
}
