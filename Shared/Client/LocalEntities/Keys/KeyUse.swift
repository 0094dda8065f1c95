/// The used part of a granted range; the next request reports it to the server.
public struct KeyUse: Sendable, Hashable {
    /// The granted range.
    public let range: KeyRange
    /// The number of used keys, from the first key of the range.
    public let used: Int64
}
