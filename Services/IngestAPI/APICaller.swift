import SyncModel

/// In whose name a call is made, and what it may do: a key of an instance, or the instance for calls without one.
struct APICaller: Hashable, Sendable {
    var instanceID: InstanceID
    /// Empty: no key.
    var keyID: String
    var limits: KeyLimits
}
