/// A range of keys that the server has granted to this device alone.
public struct KeyRange: Sendable, Hashable {
    /// The first key; at least 0.
    public let first: Int64
    /// The last key, inclusive.
    public let last: Int64

    /// Makes a range. `KeyGenerator` refuses an invalid one.
    public init(first: Int64, last: Int64) {
        self.first = first
        self.last = last
    }
}
