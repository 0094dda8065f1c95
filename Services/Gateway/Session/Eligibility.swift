import BusMessages
import DeviceProtocol
import SyncModel

/// The facts that decide what a session may send and what its device may report, and the only decision on them; pure.
struct Eligibility {
    /// Why a channel's data is withheld now.
    enum Withholding {
        /// The last verdict was valid and is too old. The data is read, a verdict is requested, and the data is sent
        /// with the reply. The device stays eligible.
        case awaitsVerdict
        /// The gateway's knowledge of its sessions may be old. The device stays eligible.
        case noLease
        /// A registration in flight brings the channel's filter. The device stays eligible.
        case awaitsFilter
        /// Not eligible. Data that comes meanwhile is a backlog (D10).
        case notEligible(IneligibilityReason)
    }

    /// The kind of access to a channel.
    enum Access {
        /// Send data of the channel to the device.
        case handOut
        /// A report of the device about data that it has: a position, a confirmation, a stored re-read.
        case report
    }

    /// A change for the user as a whole, in no particular channel.
    enum UserWrite {
        case ownership
        case operations
        case parameters
    }

    var identity: SessionIdentity
    var registration = SessionRegistration()
    /// Whether this device owns the bound user's single-device data (D8).
    var ownership = Ownership()
    var check = SessionCheck()
    /// The filters of the channels.
    var filters = SessionFilters()

    /// - Parameter identity: of the device whose Connect was accepted.
    init(_ identity: SessionIdentity) { self.identity = identity }

    // MARK: Decisions

    /// The rule for every batch and every write of a device (Design.md#eligibility; W13; D16). A nil value means:
    /// allowed.
    ///
    /// A report is about data that was sent already. So neither a suspended Sync ID nor a filter prevents it.
    ///
    /// - Parameter channelID: nil: the session knows no oplogs of the channel yet.
    func withholding(
        _ key: ChannelKey, channelID: Int64?, in context: SessionContext, for access: Access = .handOut
    ) -> Withholding? {
        let configuration = context.rules(of: key, in: identity.instanceID)
        return withholding(
            by: configuration?.rules, lifetime: configuration?.verdictLifetime, in: context
        ) { instance in
            switch access {
            case .handOut:
                if let obstacle = IneligibilityReason(instance: instance, configuration: configuration) {
                    return .notEligible(obstacle)
                }
                if identity.subscriptions.suspended.contains(key.bizType) { return .notEligible(.suspended) }
                let isHeld = channelID.map { filters.holds($0) } ?? false
                return configuration?.isFiltered == true && isHeld ? .awaitsFilter : nil
            case .report:
                if configuration == nil { return .notEligible(.configurationOffline) }
                return key.kind.needsUser && identity.userID == nil ? .notEligible(.sessionNotValid) : nil
            }
        }
    }

    /// The same rule for changes of the user as a whole.
    func withholding(
        _ write: UserWrite, in context: SessionContext
    ) -> Withholding? {
        let checks = context.control.checks(identity.instanceID)
        let isChecked =
            switch write {
            case .ownership: checks.ofOwners
            case .operations, .parameters: checks.ofUsers
            }
        let rules = ChannelRules(isSingleDevice: false, checksSession: isChecked)
        // Ownership moves with a registration, and the store itself refuses one under a lost lease.
        return withholding(
            by: rules, lifetime: nil, in: context, needsLease: write != .ownership
        ) { instance in
            if instance?.isEnabled != true { return .notEligible(.instanceDisabled) }
            return identity.userID == nil ? .notEligible(.sessionNotValid) : nil
        }
    }

    /// The only decision on eligibility: the lease, the caller's conditions, the owner, the verdict.
    ///
    /// - Parameters:
    ///   - rules: nil: no configuration exists, and `first` refuses.
    ///   - lifetime: the configuration's verdict lifetime; nil: the instance's.
    ///   - first: evaluated after the lease, before owner and verdict.
    private func withholding(
        by rules: ChannelRules?, lifetime ownLifetime: Duration?,
        in context: SessionContext, needsLease: Bool = true, first: (Instance?) -> Withholding?
    ) -> Withholding? {
        if needsLease, !registration.isOnRecord(in: context) { return .noLease }
        let instance = context.instance(identity.instanceID)
        let lifetime = ownLifetime ?? instance?.verdictLifetime ?? .zero
        var standing = check.standing(for: lifetime, at: context.now)
        if standing == .awaited, instance?.validatorURL.isEmpty != false { standing = .notValid }
        let stands = first(instance)
        if case .notEligible = stands { return stands }
        if let obstacle = rules?.obstacle(
            isSuspended: false, isOwner: ownership.isHeld, hasValidVerdict: standing != .notValid)
        {
            return .notEligible(obstacle)
        }
        if let stands { return stands }
        return standing == .awaited && rules?.checksSession == true ? .awaitsVerdict : nil
    }

    /// Whether the device may report on data of a channel (D16). A valid verdict that waits for renewal counts, because
    /// the data was sent with it.
    func mayReport(_ key: ChannelKey, in context: SessionContext) -> Bool {
        // Device channels concern no user.
        if !key.kind.needsUser { return true }
        switch withholding(key, channelID: nil, in: context, for: .report) {
        case nil, .awaitsVerdict: return true
        case .noLease, .awaitsFilter, .notEligible: return false
        }
    }

    /// Whether a channel's data may be read: it can be sent now, or with the next verdict.
    func mayRead(_ key: ChannelKey, channelID: Int64?, in context: SessionContext) -> Bool {
        switch withholding(key, channelID: channelID, in: context) {
        case nil, .awaitsVerdict: true
        case .noLease, .awaitsFilter, .notEligible: false
        }
    }

    /// Whether only the user's owner receives the channel.
    func isSingleDevice(
        _ key: ChannelKey, in context: SessionContext
    ) -> Bool {
        context.rules(of: key, in: identity.instanceID)?.isSingleDevice ?? false
    }

    /// Whether the next registration may carry the ownership request. The store refuses a registration under a lost
    /// lease.
    func mayClaimOwnership(in context: SessionContext) -> Bool {
        guard ownership.claim != nil else { return false }
        switch withholding(.ownership, in: context) {
        case nil, .awaitsVerdict: return true
        case .noLease, .awaitsFilter, .notEligible: return false
        }
    }

    // MARK: Receivers

    /// The highest position that the device's store acknowledged or reported in a channel. Zero where the server's sync
    /// point counts: a simple device has no store, and a sync point of a user or device belongs to no store.
    func acknowledged(
        _ state: Mss_Bus_V1_ChannelState, of address: ChannelAddress, in context: SessionContext
    ) -> OplogID {
        let key = ChannelKey(kind: address.target.kind, bizType: address.bizType)
        guard !identity.isSimple, hasReceiverPerStore(key, in: context) else { return .zero }
        return OplogID(state.acknowledged)
    }

    /// The receiver whose sync point of the channel the session moves.
    func receiver(
        _ key: ChannelKey, in context: SessionContext
    ) -> SyncReceiver {
        var receiver = SyncReceiver(deviceID: identity.deviceID)
        guard hasReceiverPerStore(key, in: context) else { return receiver }
        receiver.storeID = identity.storeID
        if key.kind == .globalUser { receiver.userID = identity.userID }
        return receiver
    }

    /// Whether each store has its own sync point in the channel.
    func hasReceiverPerStore(
        _ key: ChannelKey, in context: SessionContext
    ) -> Bool {
        context.rules(of: key, in: identity.instanceID)?.hasReceiverPerStore ?? (key.kind != .device)
    }

    /// Whether the reported position counts in the channel. There it can harm only the device itself. A single-device
    /// channel has the user's sync point, so the server's sync point counts (D8). A nil value means: no configuration.
    func countsClaim(
        _ key: ChannelKey, in context: SessionContext
    ) -> Bool? {
        guard key.kind == .user else { return true }
        return context.rules(of: key, in: identity.instanceID).map { !$0.isSingleDevice }
    }

    /// The receiver of the count of a simple device's resends: each device has its own, also where the user or device
    /// has one sync point.
    func resendReceiver(_ key: ChannelKey) -> SyncReceiver {
        SyncReceiver(
            deviceID: identity.deviceID, storeID: identity.storeID,
            userID: key.kind == .globalUser ? identity.userID : nil)
    }

    /// The device that must own the data of a single-device channel; nil: the channel has no owner.
    func onlyOwner(_ key: ChannelKey, in context: SessionContext) -> DeviceID? {
        isSingleDevice(key, in: context) ? identity.deviceID : nil
    }

    // MARK: Session check

    /// The channel that a frame names; nil: the frame belongs to an earlier bind.
    func channel(_ kind: Mss_Device_V1_ChannelKind, _ bizType: String, bind: UInt32) -> ChannelKey? {
        guard let kind = SyncModel.ChannelKind(wire: kind), !kind.needsUser || bind == identity.bindNumber else {
            return nil
        }
        return ChannelKey(kind: kind, bizType: BizType(bizType))
    }

    /// Whether data of a Sync ID needs a valid verdict.
    func checksSession(_ bizType: String, in context: SessionContext) -> Bool {
        context.configuration(identity.instanceID, BizType(bizType))?.checksSession ?? true
    }

    /// The verdict lifetime that the store uses for SUCCESS, NOT_ONLINE and explanations: the instance's (H4).
    /// Lifetimes of single configurations are not sent to the store. With lifetime 0 the last verdict counts (W13).
    func storeLifetime(in context: SessionContext) -> Duration {
        guard let lifetime = context.instance(identity.instanceID)?.verdictLifetime else { return .zero }
        return lifetime > .zero ? lifetime : Limits.longestVerdictLifetime
    }

    /// The remaining validity of the verdict, which the caller sends to the store now.
    mutating func verdictForStore(in context: SessionContext) -> Duration {
        let remaining = check.remaining(of: storeLifetime(in: context), at: context.now)
        check.recordSentToStore(remaining, at: context.now)
        return remaining
    }

    // MARK: Requests for verdicts

    /// Requests a verdict, unless a request is in flight.
    mutating func validate(in context: SessionContext) -> [SessionAction] {
        guard
            let userID = identity.userID, let instance = context.instance(identity.instanceID),
            !instance.validatorURL.isEmpty, check.ask()
        else { return [] }
        return [
            .validate(
                instanceID: identity.instanceID, userID: userID, sessionID: identity.sessionID,
                bindNumber: identity.bindNumber)
        ]
    }

    /// Requests a verdict for waiting data.
    mutating func requestVerdict(in context: SessionContext) -> [SessionAction] {
        check.mayRequest ? validate(in: context) : []
    }

    /// Renews the verdict before it ends, so that data need not wait.
    mutating func validateWhenDue(
        of channels: some Collection<ChannelKey>, in context: SessionContext
    ) -> [SessionAction] {
        guard let due = nextValidation(of: channels, in: context), due <= context.now else { return [] }
        return validate(in: context)
    }

    /// The instant from which on a verdict must be requested; nil: none, before another event.
    func nextValidation(
        of channels: some Collection<ChannelKey>, in context: SessionContext
    ) -> ContinuousClock.Instant? {
        guard identity.userID != nil, context.instance(identity.instanceID)?.validatorURL.isEmpty == false else {
            return nil
        }
        return check.nextRequest(for: shortestLifetime(of: channels, in: context), at: context.now)
    }

    /// The shortest verdict lifetime of this session's data, without lifetime 0. It includes the instance's lifetime,
    /// which the store uses.
    private func shortestLifetime(
        of channels: some Collection<ChannelKey>, in context: SessionContext
    ) -> Duration? {
        let configured = channels.compactMap { key -> Duration? in
            guard let found = context.configuration(identity.instanceID, key.bizType), found.checksSession else {
                return nil
            }
            return found.verdictLifetime
        }
        return (configured + [storeLifetime(in: context)]).filter { $0 > .zero }.min()
    }

    /// Sends the remaining validity to the store, if it changed enough.
    mutating func updateStore(in context: SessionContext) -> [SessionAction] {
        let lifetime = storeLifetime(in: context)
        let remaining = check.remaining(of: lifetime, at: context.now)
        guard check.isNewToStore(remaining, of: lifetime, at: context.now) else { return [] }
        return [updateAction(in: context)]
    }

    /// The action that updates foreground state and verdict in the store.
    mutating func updateAction(in context: SessionContext) -> SessionAction {
        .update(
            identity, connectionEpoch: registration.connectionEpoch,
            verdictFor: verdictForStore(in: context))
    }
}
