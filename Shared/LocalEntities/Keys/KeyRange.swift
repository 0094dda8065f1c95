/// Keys that the server has granted to this device alone, the last one included.
public struct KeyRange: Sendable, Hashable {
    /// The first, at least 0.
    public let first: Int64
    /// The last.
    public let last: Int64

    /// A range; a generator refuses one that cannot be.
    public init(first: Int64, last: Int64) {
        self.first = first
        self.last = last
    }
}
