/// Some operation records of a list, in its order.
package struct RecordPage: Hashable, Sendable {
    package var records: [OperationRecord]
    /// The list goes on behind the last of them.
    package var hasMore: Bool
    /// Where the chain of all records ended at the moment of reading.
    package var head: RecordHead

    package init(records: [OperationRecord], hasMore: Bool, head: RecordHead) {
        self.records = records
        self.hasMore = hasMore
        self.head = head
    }
}
