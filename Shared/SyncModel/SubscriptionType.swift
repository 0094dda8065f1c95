/// What an attribute of an oplog or a subscription parameter holds.
package enum SubscriptionType: String, Hashable, Sendable, CaseIterable {
    /// Compared by its bytes in UTF-8.
    case text
    /// A double; neither infinite nor not a number.
    case number
    case boolean
}
