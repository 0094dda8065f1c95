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
    /// A global push goes to connected devices at once, paced (spec D15); only for global configurations.
    package var isImmediate: Bool
    /// How old a verdict may be that this data goes out on; zero: asked before every batch; nil: as the instance says
    /// (spec V5). Only where the session is checked.
    package var verdictLifetime: Duration?
    /// What oplogs say of themselves, and which of them a receiver is sent (spec, two-way §2, Parameters).
    package var subscription: SubscriptionText
    /// It has, or once had, a filter: what its receivers were sent is kept account of.
    package var isFiltered: Bool
    /// Rises with every change; 0 for one that is not stored yet.
    package var revision: Int

    package init(
        instanceID: InstanceID, bizType: BizType, description: String, kind: ChannelKind, isMultiDevice: Bool,
        isPersistent: Bool, repush: RepushMode, checksSession: Bool, isOnline: Bool, isImmediate: Bool = false,
        verdictLifetime: Duration? = nil, subscription: SubscriptionText = .none, isFiltered: Bool = false,
        revision: Int = 0
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
        self.isImmediate = isImmediate
        self.verdictLifetime = verdictLifetime
        self.subscription = subscription
        self.isFiltered = isFiltered
        self.revision = revision
    }

    /// What is wrong with it, for whoever wants to store it; nil when it can be (spec C3).
    package var fault: String? {
        let allowed = bizType.text.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard allowed, (1...Limits.bizTypeUnits).contains(bizType.text.utf8.count) else {
            return "a Sync ID has 1 to \(Limits.bizTypeUnits) letters, digits, '-', '_' or '.'"
        }
        if case .threshold(let newest) = repush, !(1...1_000).contains(newest) {
            return "a re-push threshold is a number from 1 to 1000"
        }
        if [ReservedSyncID.results, ReservedSyncID.diagnosis].contains(bizType),
            kind != .device || !isPersistent || repush != .all
        {
            return "\(bizType) is the service's own: for devices, persistent, all of a backlog"
        }
        if kind.isGlobal, !isPersistent { return "global data is always persistent" }
        if !kind.isGlobal, isImmediate { return "only global data can be immediate: other data always is" }
        if kind == .globalUser, !isMultiDevice { return "global data goes to every device of a user" }
        if !kind.needsUser, isMultiDevice || checksSession {
            return "multi-device sync and the session check need users as the target"
        }
        if let verdictLifetime {
            guard checksSession else { return "a verdict lifetime needs the session check" }
            guard (.zero...Limits.longestVerdictLifetime).contains(verdictLifetime) else {
                return "the lifetime of a verdict is 0 s to 30 days"
            }
        }
        return subscriptionFault
    }

    /// What is wrong with its filter and declarations, with the place; nil: nothing.
    package var subscriptionFault: String? {
        if bizType == ReservedSyncID.results, subscription != .none { return "\(bizType) takes no filter" }
        do throws(SubscriptionFault) {
            _ = try SubscriptionRules(subscription)
            return nil
        } catch {
            return error.reason
        }
    }

    /// The rules for a channel of this kind. Oplogs stay in the channel of the push scope that they were stored under;
    /// when the scope changes they go by the other rules of the changed configuration (spec C4, D17). Nil: the channel
    /// is for another target, so it belongs to a configuration that was deleted.
    package func scoped(to kind: ChannelKind) -> SyncConfiguration? {
        guard kind.hasSameTarget(as: self.kind) else { return nil }
        var scoped = self
        scoped.kind = kind
        if kind == .globalUser { scoped.isMultiDevice = true }
        if kind.isGlobal { scoped.isPersistent = true } else { scoped.isImmediate = false }
        return scoped
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
