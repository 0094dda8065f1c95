package import ServiceKit
package import SyncModel

/// What calls ask of the control data.
package protocol ConfigurationLookup: Sendable {
    /// False until the first snapshot: nothing can be said of any instance.
    var isLoaded: Bool { get }
    /// An instance, enabled or not.
    func instance(_ id: InstanceID) -> Instance?
    /// A configuration, online or not.
    func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration?
}

extension ControlDirectory: ConfigurationLookup {}
