/// Whether changes that concern a user as a whole need a valid verdict of the tenant (spec D16).
package struct InstanceChecks: Hashable, Sendable {
    /// The instance has a validator, and a configuration for users whose session check is on.
    package var ofUsers: Bool
    /// The same of a single-device configuration: only a device with a valid verdict becomes a user's owner (spec D8).
    package var ofOwners: Bool

    package init(ofUsers: Bool = false, ofOwners: Bool = false) {
        self.ofUsers = ofUsers
        self.ofOwners = ofOwners
    }

    /// Of an instance and its configurations, online or not.
    package init(_ instance: Instance, _ configurations: some Sequence<SyncConfiguration>) {
        self.init()
        guard !instance.validatorURL.isEmpty else { return }
        for configuration in configurations where configuration.checksSession {
            ofUsers = true
            if configuration.isSingleDevice { ofOwners = true }
        }
    }
}
