/// One test of one attribute.
public struct AttributeTest: Sendable, Hashable {
    /// What it is compared with.
    public enum Operand: Sendable, Hashable {
        /// For `isNull` and `notNull`.
        case nothing
        case value(AttributeValue)
        /// For `isIn` and `notIn`.
        case values([AttributeValue])
        /// Another attribute of the same type, of the same row or a joined one.
        case attribute(String)
    }

    /// `name` of the query's own type, or `alias.name`; a row's state has the names `pending`, `pendingChange`,
    /// `isCreated`, `isUpdated`, `isDeleted`, `replayCounter`, `replayPending` and `replayFailure`.
    public var attribute: String
    /// How it is compared.
    public var comparison: Comparison
    /// With what.
    public var operand: Operand

    /// A test; the query's compilation checks it.
    public init(_ attribute: String, _ comparison: Comparison, _ operand: Operand = .nothing) {
        self.attribute = attribute
        self.comparison = comparison
        self.operand = operand
    }
}
