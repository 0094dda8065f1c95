/// What a configuration says of subscription parameters, as people write it.
package struct SubscriptionText: Hashable, Sendable {
    /// The filter; empty: every oplog is for everybody.
    package var filter: String
    /// What oplogs may say of themselves: `region text, price number`.
    package var attributes: String
    /// What a filter may ask of a receiver: `region text = "north", max number`.
    package var parameters: String

    package init(filter: String = "", attributes: String = "", parameters: String = "") {
        self.filter = filter
        self.attributes = attributes
        self.parameters = parameters
    }

    /// No filter, and nothing declared.
    package static let none = SubscriptionText()
}
