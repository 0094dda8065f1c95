import ServiceKit
import SyncModel

/// What the API asks of the control data.
protocol ConfigurationLookup: Sendable {
    /// False until the first snapshot: nothing can be said of any instance.
    var isLoaded: Bool { get }
    /// False while it may be that a change has not arrived here: nobody can be let in.
    var isCurrent: Bool { get }
    /// An instance, enabled or not.
    func instance(_ id: InstanceID) -> Instance?
    /// The instance that has a live key of this id for backends.
    func instance(ofBackendKey keyID: String) -> Instance?
    /// The id of a live key for backends, another one each time; empty: there is none.
    var someBackendKey: String { get }
    /// A configuration, online or not.
    func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration?
}

extension ControlDirectory: ConfigurationLookup {}
