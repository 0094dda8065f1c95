/// The arguments of `beginSynchronize`.
struct SynchronizationRequest: Sendable, Hashable {
    /// The groups; empty: all groups.
    var groups: [String] = []
    /// The context that `onSynchronize` receives.
    var userContext = ""
}
