import SyncModel

/// In whose name a call is made, and what it may do: a key of an instance, or the instance for calls without one.
struct APICaller: Hashable, Sendable {
    var instanceID: InstanceID
    /// Empty: no key.
    var keyID: String
    var limits: KeyLimits

    /// What is counted for together; the limits may change meanwhile.
    struct Account: Hashable, Sendable {
        let instanceID: InstanceID
        let keyID: String
    }

    /// What its calls and pushes count for.
    var account: Account { Account(instanceID: instanceID, keyID: keyID) }
}
