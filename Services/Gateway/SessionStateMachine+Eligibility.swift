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

    /// What the device wants to do with a channel.
    enum Access {
        /// Data of the channel goes to the device.
        case handOut
        /// The device reports what it did with data that it has: a position, a confirmation, a stored re-read.
        case report
    }

    /// What the device changes for its user as a whole; it belongs to no channel.
    enum UserWrite {
        case ownership
        case operations
        case parameters
    }

    /// The rule of hand-outs and of writes, asked at every batch and at every write (design §1, §9; spec §1, Eligible;
    /// D16). Nil: the device may.
    ///
    /// A report is about data that has gone out. So neither a suspended business type nor a filter stands in its way.
    func withholding(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings, for access: Access = .handOut
    ) -> Withholding? {
        #if KNOWN_BAD
            if access == .report, KnownBad.writesNotChecked.isOn { return nil }
        #endif
        #if KNOWN_BAD
            let present = world.configuration(identity.instanceID, key.bizType)
            let isFormer = KnownBad.formerScopeWithheld.isOn && present?.kind != key.kind
            let configuration = isFormer ? nil : world.rules(of: key, in: identity.instanceID)
        #else
            let configuration = world.rules(of: key, in: identity.instanceID)
        #endif
        return withholding(
            by: configuration?.rules, lifetime: configuration?.verdictLifetime, of: identity, in: world
        ) { instance in
            switch access {
            case .handOut:
                if let obstacle = Obstacle(instance: instance, configuration: configuration) {
                    return .notEligible(obstacle)
                }
                if identity.suspended.contains(key.bizType) { return .notEligible(.suspended) }
                let isHeld = cursors[key].map { filters.holds($0.channelID) } ?? false
                return configuration?.isFiltered == true && isHeld ? .awaitsFilter : nil
            case .report:
                if configuration == nil { return .notEligible(.configurationOffline) }
                return key.kind.needsUser && identity.userID == nil ? .notEligible(.sessionNotValid) : nil
            }
        }
    }

    /// The same rule for what the device changes for its user as a whole.
    func withholding(
        _ write: UserWrite, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Withholding? {
        #if KNOWN_BAD
            if write != .ownership, KnownBad.writesNotChecked.isOn { return nil }
        #endif
        let checks = world.checks(identity.instanceID)
        let isChecked =
            switch write {
            case .ownership: checks.ofOwners
            case .operations, .parameters: checks.ofUsers
            }
        let rules = ChannelRules(isSingleDevice: false, checksSession: isChecked)
        // The store itself refuses a registration, by which ownership is taken, under a lease that is lost.
        return withholding(
            by: rules, lifetime: nil, of: identity, in: world, needsLease: write != .ownership
        ) { instance in
            if instance?.isEnabled != true { return .notEligible(.instanceDisabled) }
            return identity.userID == nil ? .notEligible(.sessionNotValid) : nil
        }
    }

    /// The one place that decides: the lease, what the caller adds, the owner, the verdict.
    ///
    /// - Parameters:
    ///   - rules: nil: there is no configuration, and `first` refuses.
    ///   - lifetime: of a verdict, where the configuration has one of its own.
    ///   - first: asked behind the lease, before owner and verdict.
    private func withholding(
        by rules: ChannelRules?, lifetime ownLifetime: Duration?, of identity: SessionIdentity,
        in world: SessionSurroundings, needsLease: Bool = true, first: (Instance?) -> Withholding?
    ) -> Withholding? {
        let isOnRecord = world.holdsLease && leaseEpoch == world.leaseEpoch && connectionEpoch > 0
        #if KNOWN_BAD
            if needsLease, !isOnRecord, !(KnownBad.leaseNotAsked.isOn && connectionEpoch > 0) { return .noLease }
            let ownLifetime = KnownBad.configuredLifetimeIgnored.isOn ? nil : ownLifetime
        #else
            if needsLease, !isOnRecord { return .noLease }
        #endif
        let instance = world.instance(identity.instanceID)
        let lifetime = ownLifetime ?? instance?.verdictLifetime ?? .zero
        var standing = check.standing(for: lifetime, at: world.now)
        if standing == .awaited, instance?.validatorURL.isEmpty != false { standing = .notValid }
        let stands = first(instance)
        if case .notEligible = stands { return stands }
        if let obstacle = rules?.obstacle(
            isSuspended: false, isOwner: ownership.isHeld, hasValidVerdict: standing != .notValid)
        {
            return .notEligible(obstacle)
        }
        if let stands { return stands }
        #if KNOWN_BAD
            if KnownBad.awaitedCountsAsValid.isOn { return nil }
        #endif
        return standing == .awaited && rules?.checksSession == true ? .awaitsWord : nil
    }

    /// Whether the device may report what it did with data of a channel (spec D16). A verdict that was valid and waits
    /// to be renewed counts: the data went out on it.
    func mayReport(_ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings) -> Bool {
        // Of the device alone: its channels concern no user.
        if !key.kind.needsUser { return true }
        switch withholding(key, of: identity, in: world, for: .report) {
        case nil, .awaitsWord: return true
        case .noLease, .awaitsFilter, .notEligible: return false
        }
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
        world.rules(of: key, in: identity.instanceID)?.isSingleDevice ?? false
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
