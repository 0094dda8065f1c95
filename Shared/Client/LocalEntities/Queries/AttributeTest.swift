/// A test of one attribute.
public struct AttributeTest: Sendable, Hashable {
    /// The right side of a comparison.
    public enum Operand: Sendable, Hashable {
        /// For `isNull` and `notNull`.
        case nothing
        case value(AttributeValue)
        /// For `isIn` and `notIn`.
        case values([AttributeValue])
        /// Another attribute of the same type, of the same row or a joined one.
        case attribute(String)
    }

    /// The left side: `name` of the query's own type, or `alias.name`. A row's state has the names `pending`,
    /// `pendingChange`, `isCreated`, `isUpdated`, `isDeleted`, `replayCounter`, `replayPending`, `replayFailure` and
    /// `hasLogRecords`.
    public var attribute: String
    /// The comparison.
    public var comparison: Comparison
    /// The right side.
    public var operand: Operand

    /// Makes a test. The query checks it when it is executed.
    public init(_ attribute: String, _ comparison: Comparison, _ operand: Operand = .nothing) {
        self.attribute = attribute
        self.comparison = comparison
        self.operand = operand
    }
}
