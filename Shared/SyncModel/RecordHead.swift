/// The end of the chain of operation records. Kept elsewhere, it shows later that nothing up to it was changed.
package struct RecordHead: Hashable, Sendable {
    /// 0: there is no record yet.
    package var number: Int64
    /// 32 bytes.
    package var hash: [UInt8]

    package init(number: Int64, hash: [UInt8]) {
        self.number = number
        self.hash = hash
    }
}
