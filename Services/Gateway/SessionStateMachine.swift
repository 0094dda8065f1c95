import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// One device connection from its first frame to its end: events in, actions out, no I/O and no clock.
///
/// The rules of hand-out are asked at every batch, never once at connect: configuration online, lease held, verdict
/// valid, device matching (design §1). What may not go out now stays unread in the database; the cursor stays behind
/// and is read on when the reason ends.
struct SessionStateMachine {
    /// Where the connection is in its life.
    enum Phase: Equatable {
        /// Accepted, no frame yet. Exits: opening (Connect), proving (a signed one), closed (any other, deadline).
        case awaitingConnect
        /// The nonce of a signed Connect is being claimed. Exits: opening (it was new), closed (used, not known).
        case proving
        /// Registration is on its way. Exits: open (registered), closed (refused, superseded, device gone).
        case opening
        /// In service. Exits: closed.
        case open
        /// Over; every event is ignored. No exit.
        case closed
    }

    /// One channel of this session; the target follows from the identity.
    struct ChannelKey: Hashable {
        let kind: SyncModel.ChannelKind
        let bizType: BizType
    }

    private(set) var phase = Phase.awaitingConnect
    private(set) var identity: SessionIdentity?
    /// While proving.
    var unproven: UnprovenConnect?
    private(set) var connectionEpoch: Int64 = 0
    var cursors: [ChannelKey: ChannelCursor] = [:]
    private(set) var keysByChannelID: [Int64: ChannelKey] = [:]
    /// Heads and recalls told before the registration's answer, which may not know them yet.
    private var earlyHeads: [ChannelAddress: (channelID: Int64, head: OplogID, recalled: [OplogID])] = [:]
    var reportedPoints: [ChannelKey: OplogID] = [:]
    var check = SessionCheck()
    /// The tenant has answered while a registration was on its way.
    var hasUntoldVerdict = false
    /// What waits for a word of the tenant.
    var parked: [Parked] = []
    private var retryAt: ContinuousClock.Instant?
    /// Channels whose last page moved nothing; they are read on at `retryAt`.
    private var pausedFetches: [ChannelKey] = []
    /// Whether this device owns the bound user's single-device data (spec D8).
    var ownership = Ownership()
    /// Of the device: they wait for the tenant's word, at most one of operations, of parameters and of confirmations.
    var heldRequests: [Mss_Device_V1_Packet] = []
    var rereads = SessionRereads()
    var requests = SessionRequests()
    /// Operations of the present bind on their way to the relay.
    var operations = SessionOperations()
    /// By which filters the channels go.
    var filters = SessionFilters()
    private var needsOpen = false
    private(set) var isRegistering = false
    /// Rules changed while a registration was on its way, whose answer may go by the former ones.
    var rulesChanged = false
    /// The lease under which the registration on its way was sent, and whether it held then.
    private var registering: (leaseEpoch: Int64, isUnderLease: Bool) = (0, false)
    /// The lease under which the session is on record: under a later one nobody knows of it until it is announced.
    private(set) var leaseEpoch: Int64 = 0
    /// Something came up while a registration was on its way, whose answer may not know it.
    private var announcesAgain = false
    /// The newest connection of this device that is known of, while this one is not registered.
    var newestConnection: Int64 = 0
    /// The user was bound, which is not registered yet.
    private(set) var opensBind = false
    /// What the tenant said meanwhile: the device hears it behind the bind's result.
    var untoldState: Mss_Device_V1_Packet?
    private var announcesCaughtUp = false
    var windowUsed = 0
    private var lastHeard: ContinuousClock.Instant
    /// The next ping comes after at most so long.
    private var interval: Duration
    private let limits: SessionLimits
    /// Entries of one batch at the most.
    private let batchEntries: Int

    /// - Parameter batchEntries: entries of one batch at the most.
    init(limits: SessionLimits, batchEntries: Int = .max, now: ContinuousClock.Instant) {
        self.limits = limits
        self.batchEntries = batchEntries
        lastHeard = now
        interval = limits.heartbeat
    }

    /// Pages of the opening's backlog are on their way: those that are here wait for them, to travel together (spec D5).
    var gathersBacklog: Bool {
        phase == .open
            && cursors.contains { $1.holdsCaughtUp && $1.isFetching && !pausedFetches.contains($0) }
    }

    // MARK: Frames from the device

    /// The Connect is taken once its signature has been checked.
    mutating func prove(_ connect: Mss_Device_V1_Connect) {
        unproven = UnprovenConnect(connect: connect)
        phase = .proving
    }

    /// The Connect is taken: it says who the device is.
    mutating func begin(_ identity: SessionIdentity) {
        self.identity = identity
        phase = .opening
    }

    /// A frame came in.
    mutating func received(_ packet: Mss_Device_V1_Packet, in world: SessionSurroundings) -> [SessionAction] {
        guard phase != .closed else { return [] }
        lastHeard = world.now
        switch (phase, packet.body) {
        case (.awaitingConnect, .connect(let connect)):
            return received(connect, in: world)
        case (.awaitingConnect, _):
            return close(.protocolViolation, "the first frame must be Connect")
        case (_, .connect):
            return close(.protocolViolation, "Connect came twice")
        case (.proving, .bind), (.proving, .foreground), (.proving, .subscriptions):
            return keep(packet)
        case (_, .bind(let bind)):
            return received(bind, in: world)
        case (_, .ping(let ping)):
            if ping.intervalSeconds > 0 {
                interval = min(.seconds(Int64(ping.intervalSeconds)), limits.longestInterval)
            }
            return [.send(.with { $0.pong.number = ping.number })]
        case (_, .foreground(let state)):
            return received(foreground: state.foreground, in: world)
        case (_, .subscriptions(let subscriptions)):
            return received(subscriptions, in: world)
        case (_, .historyRequest(let request)):
            return received(request, in: world)
        case (_, .summaryRequest(let request)):
            return received(request, in: world)
        case (_, .submitOperations(let frame)):
            return received(frame, in: world)
        case (_, .keepParameters(let frame)):
            return received(frame, in: world)
        case (.open, .storedAck(let ack)):
            return received(ack, in: world)
        case (.open, .confirmReport(let report)):
            return received(report, in: world)
        case (_, .close):
            phase = .closed
            return [.close(.normal, "the device closed")]
        default:
            // A body this build does not know, or one that only a gateway sends: ignored, so that newer devices live.
            return []
        }
    }

    private mutating func received(_ bind: Mss_Device_V1_Bind, in world: SessionSurroundings) -> [SessionAction] {
        guard let current = identity, bind.bindNumber > current.bindNumber else {
            return close(.protocolViolation, "bind_number must rise")
        }
        guard Self.spend(on: bind, to: current.instanceID, in: world) else { return closeForSharedRate() }
        guard let parameters = Self.parameters(bind.parameters) else { return closeForParameters() }
        identity?.parameters = parameters
        return take(bind, in: world) ?? refuseBind(bind, in: world)
    }

    /// Switches to the user; nil when the bind breaks a limit.
    mutating func take(_ bind: Mss_Device_V1_Bind, in world: SessionSurroundings) -> [SessionAction]? {
        guard
            bind.userID.utf16.count <= Limits.linkTokenUnits, bind.sessionID.utf16.count <= sessionUnits(in: world),
            !bind.userID.utf8.contains(0)
        else { return nil }
        forgetUser()
        identity?.userID = bind.userID.isEmpty ? nil : UserID(bind.userID)
        identity?.sessionID = bind.sessionID
        identity?.bindNumber = bind.bindNumber
        note(bind.syncPoints, needingUser: true)
        opensBind = true
        ownership = ownership(of: bind, in: world)
        return dropParked(in: world) + register(in: world) + validate(in: world)
    }

    private mutating func received(foreground: Bool, in world: SessionSurroundings) -> [SessionAction] {
        guard let current = identity, current.isForeground != foreground else { return [] }
        identity?.isForeground = foreground
        guard phase == .open, let identity else { return [] }
        // Global oplogs are not pushed to an app in the foreground; they are read when it comes there (spec D15).
        if foreground, !isRegistering { return register(in: world) }
        return [.update(identity, connectionEpoch: connectionEpoch, verdictFor: verdictForStore(in: world))]
    }

    private mutating func received(
        _ subscriptions: Mss_Device_V1_Subscriptions, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard let suspended = Self.suspended(subscriptions.suspended) else { return closeForTooManySuspended() }
        guard let parameters = Self.parameters(subscriptions.parameters) else { return closeForParameters() }
        guard let current = identity, current.suspended != suspended || current.parameters != parameters else {
            return []
        }
        identity?.suspended = suspended
        identity?.parameters = parameters
        let actions = readOn(in: world)
        // Announced, not updated: the store then has the lists in their order, whatever is lost on the way.
        return actions + announce(in: world)
    }

    // MARK: Registration

    /// One registration at a time: a bind that comes meanwhile is registered when the answer is in.
    mutating func register(in world: SessionSurroundings) -> [SessionAction] {
        guard !isRegistering else { return identity.map { [.listen($0.targets)] } ?? [] }
        if let instanceID = identity?.instanceID {
            let filtered = world.filtered(instanceID)
            filters.asked(filtered)
            identity?.filtered = filtered.bizTypes
        }
        guard let identity else { return [] }
        isRegistering = true
        rulesChanged = false
        registering = (world.leaseEpoch, world.holdsLease)
        ownership.isAsked = mayClaimOwnership(in: world)
        needsOpen = false
        return [
            .listen(identity.targets),
            .open(
                identity, connectionEpoch: connectionEpoch, opensBind: opensBind,
                claim: ownership.isAsked ? ownership.claim : nil, verdictFor: verdictForStore(in: world)),
        ]
    }

    /// The registration, or announcement, was answered.
    ///
    /// - Parameter bindNumber: the bind that it was for; when another came meanwhile, that one is registered now.
    mutating func registered(
        _ reply: Mss_Bus_V1_SessionReply, bindNumber: UInt32, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard phase == .opening || phase == .open, let identity else { return [] }
        isRegistering = false
        if reply.leaseLost { return registrationFailed(in: world) }
        if reply.wrongDeviceSecret { return closeForWrongSecret() }
        guard reply.connectionEpoch > 0, reply.connectionEpoch >= newestConnection else {
            return close(.superseded, "a newer connection of this device is open")
        }
        connectionEpoch = reply.connectionEpoch
        leaseEpoch = registering.leaseEpoch
        #if KNOWN_BAD
            let bindNumber = KnownBad.anyRegistrationTaken.isOn ? identity.bindNumber : bindNumber
        #endif
        guard bindNumber == identity.bindNumber, !rulesChanged else { return register(in: world) }
        if phase == .opening {
            // Only under a lease are the rules here, which it was also registered by, those in force.
            guard registering.isUnderLease, world.holdsLease, leaseEpoch == world.leaseEpoch else {
                return registrationFailed(in: world)
            }
            if let refusal = refuseToOpen(in: world) { return refusal }
        }
        // Only here: an answer that is dropped must not end the claim before the device is told.
        let owner = ownership.learn(reply)
        for state in reply.channels { learn(state, becomesOwner: owner.isNew, in: world) }
        filters.learn(reply.channels)
        for (address, early) in earlyHeads {
            learn(address, channelID: early.channelID, head: early.head, in: world)
            guard let key = keysByChannelID[early.channelID] else { continue }
            cursors[key]?.learnRecalls(of: early.recalled)
        }
        earlyHeads = [:]
        // Before anything is read on: what was ended while nobody could tell it goes out no more.
        let ended = learnRevocation(reply, in: world)
        for key in cursors.keys { cursors[key]?.settle() }
        var actions: [SessionAction] = []
        if phase == .opening {
            phase = .open
            actions.append(.send(.connected(reply.connectionEpoch, limits, at: world.databaseTime)))
            announcesCaughtUp = true
        }
        if opensBind {
            opensBind = false
            announcesCaughtUp = true
            actions.append(.send(.bindResult(identity.bindNumber)))
            if let untoldState { actions.append(.send(untoldState)) }
            untoldState = nil
        }
        actions += ended
        if owner.tellsDevice { actions.append(.send(.ownershipTaken(reply.ownershipEpoch, identity.bindNumber))) }
        actions += tellParameters(reply, to: identity)
        if hasUntoldVerdict {
            hasUntoldVerdict = false
            actions += tellStore(in: world)
        }
        rereads.learn(reply.rereads)
        actions += readOn(in: world)
        if announcesAgain { actions += announce(in: world) }
        return actions + registerForFilters(in: world)
    }

    /// The registration did not come through; it is repeated, as the device has nothing else to hold on to.
    mutating func registrationFailed(in world: SessionSurroundings) -> [SessionAction] {
        isRegistering = false
        #if KNOWN_BAD
            if KnownBad.bindNotRepeated.isOn, phase == .open { return [] }
        #endif
        needsOpen = true
        retryAt = world.now + limits.retryDelay
        return []
    }

    /// Everything this gateway knew may be old (lease taken anew, broker back): announce and read again.
    mutating func announce(in world: SessionSurroundings) -> [SessionAction] {
        guard phase == .open || phase == .opening else { return [] }
        announcesAgain = isRegistering
        guard !isRegistering else { return [] }
        return register(in: world)
    }

    // MARK: Channels

    /// A channel has moved.
    mutating func noticed(_ notice: ChannelNotice, in world: SessionSurroundings) -> [SessionAction] {
        guard
            phase == .opening || phase == .open, let identity, identity.isTarget(notice.address.target)
        else { return [] }
        let recalled = notice.entries.compactMap(\.recalls)
        dropRecalled(recalled, channelID: notice.channelID)
        let key = ChannelKey(kind: notice.address.target.kind, bizType: notice.address.bizType)
        // Nothing of a user whose registration is to be repeated: the device, which waits for BindResult, drops it.
        if phase == .opening || isRegistering || needsOpen, cursors[key] == nil {
            let known = earlyHeads[notice.address]
            earlyHeads[notice.address] = (
                notice.channelID, max(known?.head ?? .zero, notice.upto), (known?.recalled ?? []) + recalled
            )
            return []
        }
        // Global data waits for the next connect, or for the app to come to the foreground (spec D15).
        let isHeld =
            key.kind.isGlobal && world.rules(of: key, in: identity.instanceID)?.isImmediate != true
        if let known = cursors[key]?.channelID, known > notice.channelID { return [] }
        if cursors[key]?.channelID != notice.channelID, !isHeld {
            learn(notice.address, channelID: notice.channelID, head: .zero, in: world)
        }
        cursors[key]?.learnRecalls(of: recalled)
        guard var cursor = cursors[key], !isHeld else { return [] }
        // It may be the notice that a page was put off for.
        let wasPutOff = resumeFetch(of: key)
        cursor.isFetching = cursors[key]?.isFetching ?? false
        if let owner = notice.owner, owner != identity.deviceID, ownership.isHeld {
            cursors[key]?.learn(head: notice.upto)
            return loseOwnership(in: world)
        }
        // A notice that does not say whom a single-device batch is for is read again, where ownership is asked.
        let isForThisDevice = notice.owner == identity.deviceID || !isSingleDevice(key, of: identity, in: world)
        #if KNOWN_BAD
            if KnownBad.noticeTrusted.isOn, isForThisDevice, withholding(key, of: identity, in: world) == nil {
                return handOut(notice.entries, upto: notice.upto, of: key, to: identity, in: world)
            }
        #endif
        guard
            isForThisDevice, BatchFit(position: cursor.sent, after: notice.after, upto: notice.upto) == .applies,
            windowUsed < limits.windowBytes, world.room > 0, withholding(key, of: identity, in: world) == nil
        else {
            return wait(for: notice, isForThisDevice: isForThisDevice, &cursor, key, of: identity, in: world)
        }
        let actions = handOut(notice.entries, upto: notice.upto, of: key, to: identity, in: world)
        return wasPutOff ? actions + readOn(in: world) : actions
    }

    /// A page came back.
    mutating func fetched(
        _ reply: Mss_Bus_V1_FetchReply, channelID: Int64, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard phase == .open, let identity, let key = keysByChannelID[channelID], var cursor = cursors[key] else {
            return []
        }
        cursor.isFetching = false
        cursor.learn(head: OplogID(reply.upto))
        cursors[key] = cursor
        if reply.notOwner { return loseOwnership(in: world) + readOn(in: world) }
        let upto = cursor.end(of: OplogID(reply.upto), awaiting: reply.awaitedIds.map { OplogID($0) })
        let fit = BatchFit(position: cursor.sent, after: OplogID(reply.after), upto: upto)
        if fit == .known, OplogID(reply.after) == cursor.sent {
            // The store has less than was told of it, after a failover that lost commits; or the next entry is stored
            // nowhere and its notice has not come. The page is asked for again in a moment, or with that notice.
            cursors[key]?.isFetching = true
            pausedFetches.append(key)
            retryAt = retryAt ?? world.now + limits.retryDelay
            return []
        }
        // The reasons to withhold are asked again: they may have come up while the page was on its way.
        let reason = withholding(key, of: identity, in: world)
        if case .awaitsWord = reason, fit == .applies {
            cursors[key]?.isFetching = true
            return park(.page(reply, channelID: channelID), in: world)
        }
        guard fit == .applies, reason == nil else { return readOn(in: world) }
        let entries = reply.entries.map(Oplog.init(bus:)).filter { $0.id <= upto }
        dropRecalled(entries.compactMap(\.recalls), channelID: channelID)
        var actions: [SessionAction] = []
        var discardedUpto = OplogID.zero
        if reply.discardedUpto > reply.after {
            discardedUpto = OplogID(reply.discardedUpto)
            actions.append(.discarded(channelID: channelID, after: OplogID(reply.after), upto: discardedUpto))
        }
        actions += handOut(entries, upto: upto, discardedUpto: discardedUpto, of: key, to: identity, in: world)
        cursors[key]?.beganBacklog()
        return actions + readOn(in: world)
    }

    /// A page that was put off may be asked for again.
    ///
    /// - Returns: whether one was.
    private mutating func resumeFetch(of key: ChannelKey) -> Bool {
        guard let place = pausedFetches.firstIndex(of: key) else { return false }
        pausedFetches.remove(at: place)
        cursors[key]?.isFetching = false
        return true
    }

    /// A page did not come; it is asked for again after a moment.
    mutating func fetchFailed(channelID: Int64, in world: SessionSurroundings) -> [SessionAction] {
        guard let key = keysByChannelID[channelID] else { return [] }
        #if KNOWN_BAD
            if KnownBad.fetchFailureForgotten.isOn { return [] }
        #endif
        cursors[key]?.isFetching = false
        retryAt = world.now + limits.retryDelay
        return []
    }

    private mutating func handOut(
        _ entries: [Oplog], upto: OplogID, discardedUpto: OplogID = .zero, of key: ChannelKey,
        to identity: SessionIdentity, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard var cursor = cursors[key] else { return [] }
        let taken = cursor.take(
            upto: upto, entries: entries, discardedUpto: discardedUpto, device: identity.traits,
            now: world.databaseTime, filters: filters[cursor.channelID], batchEntries: batchEntries)
        var actions: [SessionAction] = taken.skipped.filter(\.key.isRecorded).map { reason, ids in
            .skipped(ids, because: reason, channelID: cursor.channelID)
        }
        if taken.batches.isEmpty {
            cursor.settle()
            cursors[key] = cursor
            return actions + report(of: key, in: world)
        }
        actions += push(taken.batches, of: key, &cursor, to: identity, in: world)
        cursors[key] = cursor
        return actions
    }

    /// Reports what is owed, and reads every channel that is behind and may go out, as far as the window allows; says
    /// "caught up" once.
    mutating func readOn(in world: SessionSurroundings) -> [SessionAction] {
        guard phase == .open, !isRegistering, let identity else { return [] }
        // Data that the connection cannot take would be taken back, and read again, without end.
        var actions = reportOwed(in: world) + (world.room > 0 ? sendRereads(to: identity, in: world) : [])
        var isCatchingUp = false
        for (key, cursor) in cursors where cursor.isBehind {
            if !mayRead(key, of: identity, in: world) {
                if case .notEligible = withholding(key, of: identity, in: world) {
                    cursors[key]?.suspendBacklog()
                    cursors[key]?.holdsCaughtUp = false
                }
                continue
            }
            isCatchingUp = isCatchingUp || cursor.holdsCaughtUp
            let newestUpto = cursors[key]?.openBacklog()
            guard !cursor.isFetching, world.room > 0, windowUsed < limits.windowBytes else { continue }
            var newest = 0
            if newestUpto != nil,
                case .threshold(let count)? = world.rules(of: key, in: identity.instanceID)?.repush
            {
                newest = count
            }
            cursors[key]?.isFetching = true
            actions.append(
                .fetch(
                    PageRequest(
                        channelID: cursor.channelID, isGlobal: key.kind.isGlobal, after: cursor.sent, head: cursor.head,
                        newest: newest, newestUpto: newestUpto ?? .zero, traits: identity.traits,
                        onlyOwner: isSingleDevice(key, of: identity, in: world) ? identity.deviceID : nil,
                        filters: newest > 0 ? filters[cursor.channelID] : nil, bindNumber: identity.bindNumber)))
        }
        if announcesCaughtUp, !isCatchingUp {
            announcesCaughtUp = false
            for key in cursors.keys { cursors[key]?.holdsCaughtUp = false }
            actions.append(.send(.with { $0.caughtUp.bindNumber = identity.bindNumber }))
        }
        return actions
    }

    private mutating func learn(_ state: Mss_Bus_V1_ChannelState, becomesOwner: Bool, in world: SessionSurroundings) {
        guard let target = TargetAddress(bus: state.target) else { return }
        let address = ChannelAddress(target: target, bizType: BizType(state.bizType))
        learn(
            address, channelID: state.channelID, head: OplogID(state.head), recorded: OplogID(state.syncPoint),
            acknowledged: acknowledged(state, of: address, in: world),
            resent: (OplogID(state.resentID), Int(state.repeats)), becomesOwner: becomesOwner,
            isOpening: phase == .opening || opensBind && target.kind.needsUser, in: world)
    }

    private mutating func learn(
        _ address: ChannelAddress, channelID: Int64, head: OplogID, recorded: OplogID = .zero,
        acknowledged: OplogID = .zero, resent: (OplogID, Int) = (.zero, 0), becomesOwner: Bool = false,
        isOpening: Bool = false, in world: SessionSurroundings
    ) {
        guard let identity, identity.targets.contains(address.target) else { return }
        let key = ChannelKey(kind: address.target.kind, bizType: address.bizType)
        let known = cursors[key]
        let countsClaim = countsClaim(key, of: identity, in: world) ?? false
        if let known, known.channelID >= channelID {
            // A lower one is of before a failover.
            if known.channelID > channelID { return }
            cursors[key]?.learn(head: head)
            // Whose sync point it is has changed, or is only now this device's to move.
            guard known.countsClaim != countsClaim || becomesOwner && !countsClaim else { return }
        }
        if let known {
            // Or a failover has lost the channel, and it was made anew: what the device has, or is being sent, stays.
            keysByChannelID[known.channelID] = nil
            windowUsed -= known.unacknowledgedBytes
        }
        let isSame = known?.channelID == channelID
        var cursor = ChannelCursor(
            channelID: channelID, head: max(head, isSame ? known?.head ?? .zero : known?.announced ?? .zero),
            recorded: recorded, acknowledged: acknowledged,
            reported: (isSame ? known?.held : known?.announced) ?? reportedPoints[key], countsClaim: countsClaim,
            isSimple: identity.isSimple, isOpening: isOpening && known == nil || becomesOwner && !countsClaim)
        if isSame, let known {
            cursor.takeOver(from: known, acknowledged: acknowledged)
            windowUsed += cursor.unacknowledgedBytes
            pausedFetches.removeAll { $0 == key }
        }
        if identity.isSimple, cursor.resends == nil {
            cursor.resends = BatchResends(ladder: ResendLadder(firstWait: limits.firstResend), recorded: resent)
        }
        cursors[key] = cursor
        keysByChannelID[channelID] = key
    }

    private mutating func forgetUser() {
        #if KNOWN_BAD
            if KnownBad.userDataKept.isOn { return }
        #endif
        for (key, cursor) in cursors where key.kind.needsUser {
            windowUsed -= cursor.unacknowledgedBytes
            keysByChannelID[cursor.channelID] = nil
            cursors[key] = nil
        }
        reportedPoints = reportedPoints.filter { !$0.key.kind.needsUser }
        earlyHeads = earlyHeads.filter { !$0.key.target.kind.needsUser }
        ownership = Ownership()
        heldRequests = []
        rereads.forgetUser()
        check = SessionCheck()
        hasUntoldVerdict = false
        untoldState = nil
        operations.forgetUser()
        filters.forgetUser()
    }

    // MARK: Time and end

    /// Some time has passed: called about once a second.
    mutating func ticked(in world: SessionSurroundings) -> [SessionAction] {
        guard phase != .closed else { return [] }
        let silence = lastHeard.duration(to: world.now)
        if phase == .awaitingConnect, silence >= limits.connectDeadline {
            // The network, or a stall here, may be to blame: no reason to stay away.
            return close(.idle, "no Connect within \(limits.connectDeadline)")
        }
        if silence >= interval * 5 / 2 { return close(.idle, "nothing heard for \(interval * 5 / 2)") }
        var actions = validateWhenDue(in: world)
        if let due = retryAt, due <= world.now {
            retryAt = nil
            for key in pausedFetches { cursors[key]?.isFetching = false }
            pausedFetches = []
            if needsOpen, !isRegistering {
                actions += register(in: world)
            } else {
                actions += readOn(in: world)
            }
        }
        return actions
    }

    /// The connection is gone.
    mutating func disconnected() { phase = .closed }

    /// Ends the session with a reason.
    mutating func close(_ code: CloseCode, _ reason: String) -> [SessionAction] {
        phase = .closed
        return [.close(code, reason)]
    }
}
