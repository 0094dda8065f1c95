/// A property to sort a collection by.
public struct SortKey: Sendable, Hashable {
    public var property: String
    public var isDescending: Bool

    /// Makes a sort key; ascending by default.
    public init(_ property: String, isDescending: Bool = false) {
        self.property = property
        self.isDescending = isDescending
    }

    /// The form in the query: `name` or `name:desc`.
    var text: String { isDescending ? property + ":desc" : property }
}
