import SyncModel

/// Hands a checked push to the store and waits for what became of it.
protocol PushSubmitting: Sendable {
    /// Answers within a bounded time; never throws, because every failure is one of the outcomes.
    func submit(_ push: PushRequest, configuration: SyncConfiguration) async -> PushOutcome
}
