package import SyncModel

/// Hands checked pushes to the store and waits for what became of them.
package protocol PushSubmitting: Sendable {
    /// Answers within a bounded time; never throws, because every failure is one of the outcomes.
    ///
    /// - Parameter pushes: to one target, stored in this order.
    func submit(_ pushes: [PushRequest], configuration: SyncConfiguration) async -> [PushOutcome]
}
