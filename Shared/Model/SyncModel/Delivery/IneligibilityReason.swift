/// Why a channel's data is withheld from a session. It lasts only as long as its cause (W13).
package enum IneligibilityReason: String, Hashable, Sendable, CaseIterable {
    case instanceDisabled
    case configurationOffline
    /// The Sync ID is suspended on the device.
    case suspended
    /// Another device of the user is the owner (D8).
    case notOwner
    /// No valid verdict exists, or it has expired (D16).
    case sessionNotValid
}

/// The rules of a configuration that decide about a session's eligibility.
package struct ChannelRules: Hashable, Sendable {
    /// One sync point for the user; only the owner receives (D8).
    package var isSingleDevice: Bool
    package var checksSession: Bool

    package init(isSingleDevice: Bool, checksSession: Bool) {
        self.isSingleDevice = isSingleDevice
        self.checksSession = checksSession
    }

    /// The first rule that a session of the right user or device violates; nil if it is eligible.
    package func obstacle(isSuspended: Bool, isOwner: Bool, hasValidVerdict: Bool) -> IneligibilityReason? {
        if isSuspended { return .suspended }
        if isSingleDevice, !isOwner { return .notOwner }
        return checksSession && !hasValidVerdict ? .sessionNotValid : nil
    }
}

extension SyncConfiguration {
    package var rules: ChannelRules { ChannelRules(isSingleDevice: isSingleDevice, checksSession: checksSession) }
}

extension IneligibilityReason {
    /// The obstacle in an instance or configuration, which applies to all sessions; nil without one.
    ///
    /// - Parameters:
    ///   - instance: nil if it does not exist.
    ///   - configuration: nil if it does not exist.
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
