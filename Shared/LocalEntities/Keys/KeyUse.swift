/// How much of a granted range is used; reported back with the next request.
public struct KeyUse: Sendable, Hashable {
    /// As it was granted.
    public let range: KeyRange
    /// Keys from the first on that were given to rows.
    public let used: Int64
}
