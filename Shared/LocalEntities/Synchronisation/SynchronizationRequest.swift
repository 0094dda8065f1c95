/// What an app has asked to be synchronised.
struct SynchronizationRequest: Sendable, Hashable {
    /// Empty: all groups.
    var groups: [String] = []
    /// For `onSynchronize`.
    var userContext = ""
}
