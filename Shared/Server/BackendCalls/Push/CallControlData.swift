import SyncModel

/// The control data of one call.
///
/// A refusal is decided on control data that was requested after the call had come (D17). Otherwise a backend could
/// drop a push for want of a configuration that is already online.
struct CallControlData {
    private let directory: any ConfigurationLookup
    private let instanceID: InstanceID
    /// The instance as the call found it.
    private let found: Instance?
    /// Whether newer data was read and the instance in it is the same; nil: it was not requested yet.
    private var isRefreshed: Bool?

    /// - Parameter instanceID: the instance that the call names. If it changes, the call must be admitted again,
    ///   because a key can be revoked, or a signature required.
    init(_ directory: any ConfigurationLookup, instanceID: InstanceID) {
        self.directory = directory
        self.instanceID = instanceID
        found = directory.instance(instanceID)
    }

    /// Applies rules to the control data. Before a refusal, newer data is requested, once for the call, and decides.
    ///
    /// - Parameter rules: reads the directory; it is called once or twice.
    /// - Throws: the refusal, or UNAVAILABLE if no writer replies or the instance has changed.
    mutating func apply<Value>(
        _ rules: () throws(PushRefusal) -> Value
    ) async throws(PushRefusal) -> Value {
        if isRefreshed == false { throw Self.outdated }
        do throws(PushRefusal) {
            return try rules()
        } catch {
            if isRefreshed == true { throw error }
            let isRefreshed = await directory.refreshed() && directory.instance(instanceID) == found
            self.isRefreshed = isRefreshed
            guard isRefreshed else { throw Self.outdated }
            return try rules()
        }
    }

    private static let outdated = PushRefusal(
        .unavailable, "The control data cannot be read now, or the instance has just changed; repeat the call.")
}
