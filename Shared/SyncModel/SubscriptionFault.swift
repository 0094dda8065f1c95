/// Why a filter or a declaration cannot be used.
package struct SubscriptionFault: Error, Hashable, Sendable {
    /// Of the character where it was noticed, from 1 on.
    package var position: Int
    /// What is wrong, for whoever wrote it.
    package var reason: String

    package init(at position: Int, _ reason: String) {
        self.position = position
        self.reason = reason
    }
}
