public import MobileSync

/// One test of `queryFor`: a property of an item, a comparison and a value (RES9).
public struct ResourceQuery: Sendable, Hashable {
    /// The member to compare; dots lead to an inner member: `address.city`.
    public var property: String
    public var comparison: ResourceComparison
    public var value: JSONValue

    /// Makes a test.
    public init(_ property: String, _ comparison: ResourceComparison, _ value: JSONValue) {
        self.property = property
        self.comparison = comparison
        self.value = value
    }

    /// Whether an item fulfils the test.
    func holds(_ item: JSONValue) -> Bool { comparison.holds(item[property], value) }
}
