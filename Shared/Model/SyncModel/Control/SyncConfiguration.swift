/// The rules of one Sync ID in an instance (W2, C3).
package struct SyncConfiguration: Hashable, Sendable {
    package var instanceID: InstanceID
    package var bizType: BizType
    package var description: String
    package var kind: ChannelKind
    /// Every device of the user has its own sync point (D7); only for user-target configurations.
    package var isMultiDevice: Bool
    package var isPersistent: Bool
    package var repush: RepushMode
    /// Data is sent only on sessions with a valid verdict (D16); only for user-target configurations.
    package var checksSession: Bool
    package var isOnline: Bool
    /// A global push is also sent to connected devices, at a limited rate (D15); only for global configurations.
    package var isImmediate: Bool
    /// The longest age of a verdict on which this data is sent. Zero: a verdict is requested before every batch. Nil:
    /// as the instance sets it (V5). Only with the session check.
    package var verdictLifetime: Duration?
    /// The declared attributes and parameters, and the filter (ENT8).
    package var subscription: SubscriptionText
    /// Whether it has, or ever had, a filter, so that the filter history of its receivers is kept.
    package var isFiltered: Bool
    /// Rises with every change; 0 before the configuration is stored.
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

    /// A new configuration with the defaults (C3): for every device of a user, persistent, without session check, online.
    package static func standard(
        instanceID: InstanceID, bizType: BizType, description: String = "", kind: ChannelKind = .user
    ) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: instanceID, bizType: bizType, description: description, kind: kind,
            isMultiDevice: kind.needsUser, isPersistent: true, repush: .standard, checksSession: false, isOnline: true)
    }

    /// The fault that prevents storing the configuration, as a sentence; nil for a valid one (C3).
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
        if case .threshold(let newest) = repush, !RepushMode.thresholds.contains(newest) {
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

    /// The fault of its filter and declarations, with the place; nil for valid ones.
    package var subscriptionFault: String? {
        if bizType == ReservedSyncID.results, subscription != .none { return "\(bizType) takes no filter" }
        do throws(SubscriptionFault) {
            _ = try SubscriptionRules(subscription)
            return nil
        } catch {
            return error.reason
        }
    }

    /// The rules for a channel of this kind. Oplogs stay in the channel of the push scope under which they were stored.
    /// After a change of the scope, the other rules of the new configuration apply to them (C4, D17). A nil value
    /// means: the channel
    /// has another target type, so it belongs to a deleted configuration.
    package func scoped(to kind: ChannelKind) -> SyncConfiguration? {
        guard kind.hasSameTarget(as: self.kind) else { return nil }
        var scoped = self
        scoped.kind = kind
        if kind == .globalUser { scoped.isMultiDevice = true }
        if kind.isGlobal { scoped.isPersistent = true } else { scoped.isImmediate = false }
        return scoped
    }

    /// Whether a sync point belongs to a device and store, not to the user or device as a whole (W7).
    package var hasReceiverPerStore: Bool { kind.isGlobal || (kind == .user && isMultiDevice) }

    /// Whether only the owner receives the data (D8).
    package var isSingleDevice: Bool { kind == .user && !isMultiDevice }
}
