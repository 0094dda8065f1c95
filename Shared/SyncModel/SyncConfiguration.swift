/// One push scenario of an instance and its rules (spec §1, C3).
package struct SyncConfiguration: Hashable, Sendable {
    package var instanceID: InstanceID
    package var bizType: BizType
    package var description: String
    package var kind: ChannelKind
    /// Every device of the user has its own sync point (spec D7); only for user-target configurations.
    package var isMultiDevice: Bool
    package var isPersistent: Bool
    package var repush: RepushMode
    /// Data goes only to sessions that the tenant called valid (spec D16); only for user-target configurations.
    package var checksSession: Bool
    package var isOnline: Bool

    package init(
        instanceID: InstanceID, bizType: BizType, description: String, kind: ChannelKind, isMultiDevice: Bool,
        isPersistent: Bool, repush: RepushMode, checksSession: Bool, isOnline: Bool
    ) {
        self.instanceID = instanceID
        self.bizType = bizType
        self.description = description
        self.kind = kind
        self.isMultiDevice = isMultiDevice
        self.isPersistent = isPersistent
        self.repush = repush
        self.checksSession = checksSession
        self.isOnline = isOnline
    }

    /// Whether a sync point belongs to (device, store), and not to the user or device as a whole (spec §1, Receiver).
    package var hasReceiverPerStore: Bool { kind.isGlobal || (kind == .user && isMultiDevice) }

    /// Only the owner of the user receives (spec D8).
    package var isSingleDevice: Bool { kind == .user && !isMultiDevice }
}

/// How much of a backlog a receiver gets when its session opens (spec D10).
package enum RepushMode: Hashable, Sendable {
    /// The whole backlog.
    case all
    /// Only the newest this many valid, matching oplogs, 1 to 1,000; older ones are skipped.
    case threshold(Int)
}
