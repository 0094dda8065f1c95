import BackendCalls
import ServiceKit
import SyncModel

/// What admission asks of the control data beside what every call does.
protocol CallerLookup: ConfigurationLookup {
    /// False while it may be that a change has not arrived here: nobody can be let in.
    var isCurrent: Bool { get }
    /// The instance that has a live key of this id for backends.
    func instance(ofBackendKey keyID: String) -> Instance?
    /// The id of a live key for backends, another one each time; empty: there is none.
    var someBackendKey: String { get }
}

extension ControlDirectory: CallerLookup {}
