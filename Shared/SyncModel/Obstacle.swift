/// Why a session is given nothing of a channel now; it lasts only as long as its cause (spec §1, Eligible).
package enum Obstacle: String, Hashable, Sendable, CaseIterable {
    case instanceDisabled
    case configurationOffline
    /// The device does not take data of this business type now.
    case suspended
    /// Another device of the user is the owner (spec D8).
    case notOwner
    /// The tenant has not called the session valid, or its verdict has expired (spec D16).
    case sessionNotValid
}

/// The rules of a configuration that decide who may be given its data, as far as a session has to do with it.
package struct ChannelRules: Hashable, Sendable {
    /// One sync point for the user; only the owner receives (spec D8).
    package var isSingleDevice: Bool
    package var checksSession: Bool

    package init(isSingleDevice: Bool, checksSession: Bool) {
        self.isSingleDevice = isSingleDevice
        self.checksSession = checksSession
    }

    /// What stands between these rules and a session of the right user or device; nil: nothing.
    package func obstacle(isSuspended: Bool, isOwner: Bool, hasValidVerdict: Bool) -> Obstacle? {
        if isSuspended { return .suspended }
        if isSingleDevice, !isOwner { return .notOwner }
        return checksSession && !hasValidVerdict ? .sessionNotValid : nil
    }
}

extension SyncConfiguration {
    package var rules: ChannelRules { ChannelRules(isSingleDevice: isSingleDevice, checksSession: checksSession) }
}

extension Obstacle {
    /// What lies before the session's own obstacles: an instance or configuration that gives nothing to anybody.
    ///
    /// - Parameters:
    ///   - instance: nil when there is none.
    ///   - configuration: nil when there is none.
    package init?(instance: Instance?, configuration: SyncConfiguration?) {
        if instance?.isEnabled != true {
            self = .instanceDisabled
        } else if configuration?.isOnline != true {
            self = .configurationOffline
        } else {
            return nil
        }
    }
}
