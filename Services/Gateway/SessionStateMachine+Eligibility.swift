import DeviceProtocol
import SyncModel

// What may go out now, and what the device says that it takes.
extension SessionStateMachine {
    /// Why a channel's data may not go out now.
    enum Withholding {
        /// The tenant's last word was valid and is too old: the data is read, then the tenant is asked, then it goes
        /// out with the answer. Nothing about the device has changed.
        case awaitsWord
        /// This gateway may be wrong about its sessions; nothing about the device has changed.
        case noLease
        /// A registration is under way, and with it what the channel's filter is; nothing about the device has changed.
        case awaitsFilter
        /// What comes meanwhile is a backlog (spec D10).
        case notEligible(Obstacle)
    }

    /// The rule of hand-out, asked at every batch (design §1; spec §1, Eligible). Nil: it may go out.
    func withholding(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Withholding? {
        #if KNOWN_BAD
            guard
                world.holdsLease && leaseEpoch == world.leaseEpoch || KnownBad.leaseNotAsked.isOn, connectionEpoch > 0
            else { return .noLease }
        #else
            guard world.holdsLease, leaseEpoch == world.leaseEpoch, connectionEpoch > 0 else { return .noLease }
        #endif
        let found = world.configuration(identity.instanceID, key.bizType)
        let configuration = found?.kind == key.kind ? found : nil
        let instance = world.instance(identity.instanceID)
        #if KNOWN_BAD
            let own = KnownBad.configuredLifetimeIgnored.isOn ? nil : configuration?.verdictLifetime
            let lifetime = own ?? instance?.verdictLifetime ?? .zero
        #else
            let lifetime = configuration?.verdictLifetime ?? instance?.verdictLifetime ?? .zero
        #endif
        var standing = check.standing(for: lifetime, at: world.now)
        if standing == .awaited, instance?.validatorURL.isEmpty != false { standing = .notValid }
        let obstacle =
            Obstacle(instance: instance, configuration: configuration)
            ?? configuration?.rules.obstacle(
                isSuspended: identity.suspended.contains(key.bizType), isOwner: ownsUser,
                hasValidVerdict: standing != .notValid)
        if let obstacle { return .notEligible(obstacle) }
        if configuration?.isFiltered == true, let cursor = cursors[key], filters.holds(cursor.channelID) {
            return .awaitsFilter
        }
        #if KNOWN_BAD
            if KnownBad.awaitedCountsAsValid.isOn { return nil }
        #endif
        return standing == .awaited && configuration?.checksSession == true ? .awaitsWord : nil
    }

    /// Whether a channel's data may be read: it goes out now, or with the tenant's next word.
    func mayRead(_ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings) -> Bool {
        switch withholding(key, of: identity, in: world) {
        case nil, .awaitsWord: true
        case .noLease, .awaitsFilter, .notEligible: false
        }
    }

    /// Whether only the owner of the user receives the channel.
    func isSingleDevice(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Bool {
        world.configuration(identity.instanceID, key.bizType)?.isSingleDevice ?? false
    }

    mutating func closeForTooManySuspended() -> [SessionAction] {
        close(.protocolViolation, "at most \(Limits.suspendedBizTypes) business types can be suspended")
    }

    /// The business types of a device's list; nil when it is too long. What no configuration can be called is left out.
    static func suspended(_ list: [String]) -> Set<BizType>? {
        guard list.count <= Limits.suspendedBizTypes else { return nil }
        return Set(list.filter { $0.utf16.count <= Limits.bizTypeUnits && !$0.utf8.contains(0) }.map { BizType($0) })
    }
}
