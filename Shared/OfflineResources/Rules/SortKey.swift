/// A property that a collection is ordered by.
public struct SortKey: Sendable, Hashable {
    public var property: String
    public var isDescending: Bool

    /// Ascending by default.
    public init(_ property: String, isDescending: Bool = false) {
        self.property = property
        self.isDescending = isDescending
    }

    /// As the service is told: `name` or `name:desc`.
    var text: String { isDescending ? property + ":desc" : property }
}
