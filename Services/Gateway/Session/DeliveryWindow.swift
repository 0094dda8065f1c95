import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The channels of a session and the data in flight on them: positions, pages, acknowledgements and resends; pure.
///
/// It sends as much as the send window permits. Everything else of a slow device waits in the database.
struct DeliveryWindow {
    var cursors: [ChannelKey: ChannelCursor] = [:]
    private(set) var keysByChannelID: [Int64: ChannelKey] = [:]
    /// Heads and recalls from notices that arrived before the registration's reply, which may not contain them.
    private var earlyHeads: [ChannelAddress: (channelID: Int64, head: OplogID, recalled: [OplogID])] = [:]
    /// The positions that the device reported.
    private var reportedPoints: [ChannelKey: OplogID] = [:]
    /// Channels whose last page moved nothing. They are read again after a delay.
    private var pausedFetches: [ChannelKey] = []
    /// `CaughtUp` must be sent when the opening backlog was handed out.
    private var owesCaughtUp = false
    /// Unacknowledged payload bytes.
    var used = 0
    let limits: SessionLimits
    /// Maximum of entries in one batch.
    private let batchEntries: Int

    /// - Parameter batchEntries: maximum of entries in one batch.
    init(limits: SessionLimits, batchEntries: Int) {
        self.limits = limits
        self.batchEntries = batchEntries
    }

    /// The channel with this id; nil: the session does not know it.
    func cursor(of channelID: Int64) -> ChannelCursor? { keysByChannelID[channelID].flatMap { cursors[$0] } }

    /// Why a channel's data is withheld now; nil: it is not.
    func withholding(
        _ key: ChannelKey, by eligibility: Eligibility, in context: SessionContext
    ) -> Eligibility.Withholding? {
        eligibility.withholding(key, channelID: cursors[key]?.channelID, in: context)
    }

    /// Whether the send window has capacity, and the connection too.
    private func hasRoom(in context: SessionContext) -> Bool { used < limits.windowBytes && context.room > 0 }

    /// Whether pages of the opening backlog are in flight. The arrived pages wait for them, so that few frames carry
    /// them (D5).
    var gathersBacklog: Bool {
        cursors.contains { $1.holdsCaughtUp && $1.isFetching && !pausedFetches.contains($0) }
    }

    // MARK: Channels

    /// Records reported positions of the device's channels or of the user's.
    mutating func addReportedPoints(_ points: [Mss_Device_V1_SyncPoint], needingUser: Bool) {
        for point in points {
            guard let kind = SyncModel.ChannelKind(wire: point.kind), kind.needsUser == needingUser, point.oplogID > 0
            else { continue }
            reportedPoints[ChannelKey(kind: kind, bizType: BizType(point.bizType))] = OplogID(point.oplogID)
        }
    }

    /// Applies the channels in the reply to a registration, and the notices that arrived before it.
    ///
    /// - Parameter becomesOwner: this device became the owner of the user's single-device data.
    mutating func apply(
        _ states: [Mss_Bus_V1_ChannelState], becomesOwner: Bool, by eligibility: Eligibility,
        in context: SessionContext
    ) {
        for state in states { apply(state, becomesOwner: becomesOwner, by: eligibility, in: context) }
    }

    /// Applies the notices that arrived before the reply to a registration.
    mutating func applyEarlyHeads(by eligibility: Eligibility, in context: SessionContext) {
        for (address, early) in earlyHeads {
            updateChannel(address, channelID: early.channelID, head: early.head, by: eligibility, in: context)
            guard let key = keysByChannelID[early.channelID] else { continue }
            cursors[key]?.addRecalls(early.recalled)
        }
        earlyHeads = [:]
    }

    /// Counts skipped oplogs as stored in channels without a batch in flight.
    mutating func raiseStored() {
        for key in cursors.keys { cursors[key]?.raiseStored() }
    }

    private mutating func apply(
        _ state: Mss_Bus_V1_ChannelState, becomesOwner: Bool, by eligibility: Eligibility, in context: SessionContext
    ) {
        guard let target = TargetAddress(bus: state.target) else { return }
        let address = ChannelAddress(target: target, bizType: BizType(state.bizType))
        let registration = eligibility.registration
        updateChannel(
            address, channelID: state.channelID, head: OplogID(state.head), recorded: OplogID(state.syncPoint),
            acknowledged: eligibility.acknowledged(state, of: address, in: context),
            resent: (OplogID(state.resentID), Int(state.repeats)), becomesOwner: becomesOwner,
            isOpening: !registration.isOpen || registration.opensBind && target.kind.needsUser, by: eligibility,
            in: context)
    }

    mutating func updateChannel(
        _ address: ChannelAddress, channelID: Int64, head: OplogID, recorded: OplogID = .zero,
        acknowledged: OplogID = .zero, resent: (OplogID, Int) = (.zero, 0), becomesOwner: Bool = false,
        isOpening: Bool = false, by eligibility: Eligibility, in context: SessionContext
    ) {
        guard eligibility.identity.targets.contains(address.target) else { return }
        let isSimple = eligibility.identity.isSimple
        let key = ChannelKey(kind: address.target.kind, bizType: address.bizType)
        let known = cursors[key]
        let countsClaim = eligibility.countsClaim(key, in: context) ?? false
        if let known, known.channelID >= channelID {
            // A lower channel id is from before a failover.
            if known.channelID > channelID { return }
            cursors[key]?.raiseHead(to: head)
            // A new cursor is needed: the receiver has changed, or this device became its owner.
            guard known.countsClaim != countsClaim || becomesOwner && !countsClaim else { return }
        }
        if let known {
            // Or a failover lost the channel, and it was created again. The position of the device stays.
            keysByChannelID[known.channelID] = nil
            used -= known.unacknowledgedBytes
        }
        let isSame = known?.channelID == channelID
        var cursor = ChannelCursor(
            channelID: channelID, head: max(head, isSame ? known?.head ?? .zero : known?.announced ?? .zero),
            recorded: recorded, acknowledged: acknowledged,
            reported: (isSame ? known?.held : known?.announced) ?? reportedPoints[key], countsClaim: countsClaim,
            isSimple: isSimple, isOpening: isOpening && known == nil || becomesOwner && !countsClaim)
        if isSame, let known {
            cursor.inherit(from: known, acknowledged: acknowledged)
            used += cursor.unacknowledgedBytes
            pausedFetches.removeAll { $0 == key }
        }
        if isSimple, cursor.resends == nil {
            cursor.resends = BatchResends(ladder: ResendLadder(firstWait: limits.firstResend), recorded: resent)
        }
        cursors[key] = cursor
        keysByChannelID[channelID] = key
    }

    /// Removes the channels of the user, because another bind begins.
    mutating func forgetUser() {
        for (key, cursor) in cursors where key.kind.needsUser {
            used -= cursor.unacknowledgedBytes
            keysByChannelID[cursor.channelID] = nil
            cursors[key] = nil
        }
        reportedPoints = reportedPoints.filter { !$0.key.kind.needsUser }
        earlyHeads = earlyHeads.filter { !$0.key.target.kind.needsUser }
    }

    // MARK: Notices

    /// The effect of a notice.
    enum NoticeOutcome {
        /// It is recorded for the reply to the registration, or it does not apply.
        case recorded
        /// The notice continues the position. `resumes`: pages of the channel were paused.
        case handedOut([SessionAction], resumes: Bool)
        /// The notice names another owner than this device.
        case otherOwner
        /// The data is read later. `lacksFilter`: only a registration brings the channel's filter.
        case waits(lacksFilter: Bool)
    }

    /// Processes a notice of a channel of this session.
    mutating func apply(
        _ notice: ChannelNotice, by eligibility: Eligibility, in context: SessionContext
    ) -> NoticeOutcome {
        let (recalled, identity) = (notice.entries.compactMap(\.recalls), eligibility.identity)
        let key = ChannelKey(kind: notice.address.target.kind, bizType: notice.address.bizType)
        // Data of a user whose registration will be repeated is not sent: the device waits for BindResult and drops it.
        if eligibility.registration.awaitsReply, cursors[key] == nil {
            let known = earlyHeads[notice.address]
            earlyHeads[notice.address] = (
                notice.channelID, max(known?.head ?? .zero, notice.upto), (known?.recalled ?? []) + recalled
            )
            return .recorded
        }
        // Global data waits for the next connect or the foreground (D15).
        let isHeld =
            key.kind.isGlobal && context.rules(of: key, in: identity.instanceID)?.isImmediate != true
        let known = cursors[key]?.channelID
        if let known, known > notice.channelID { return .recorded }
        if known != notice.channelID, !isHeld {
            updateChannel(
                notice.address, channelID: notice.channelID, head: .zero, by: eligibility, in: context)
        }
        cursors[key]?.addRecalls(recalled)
        guard let position = cursors[key]?.sent, !isHeld else { return .recorded }
        // It can be the notice that a paused page waits for.
        let wasPaused = resumeFetch(of: key)
        if let owner = notice.owner, owner != identity.deviceID, eligibility.ownership.isHeld {
            cursors[key]?.raiseHead(to: notice.upto)
            return .otherOwner
        }
        // A single-device notice without an owner causes a read, in which the owner is checked.
        let isForThisDevice = notice.owner == identity.deviceID || !eligibility.isSingleDevice(key, in: context)
        guard
            isForThisDevice, BatchFit(position: position, after: notice.after, upto: notice.upto) == .applies,
            hasRoom(in: context),
            withholding(key, by: eligibility, in: context) == nil
        else { return wait(for: notice, isForThisDevice: isForThisDevice, key, by: eligibility, in: context) }
        let actions = handOut(notice.entries, upto: notice.upto, of: key, by: eligibility, in: context)
        return .handedOut(actions, resumes: wasPaused)
    }

    /// Records a notice whose data cannot be sent at once. The data is read later; non-persistent entries are kept.
    private mutating func wait(
        for notice: ChannelNotice, isForThisDevice: Bool, _ key: ChannelKey, by eligibility: Eligibility,
        in context: SessionContext
    ) -> NoticeOutcome {
        var isKept = false
        var lacksFilter = false
        switch withholding(key, by: eligibility, in: context) {
        case nil, .awaitsVerdict:
            isKept = isForThisDevice
            // Data that comes from now on is no backlog (D10).
            _ = cursors[key]?.openBacklog()
        case .awaitsFilter: (isKept, lacksFilter) = (isForThisDevice, true)
        case .noLease, .notEligible: break
        }
        cursors[key]?.raiseHead(to: notice.upto)
        if isKept { cursors[key]?.bufferNonPersistent(notice.entries) }
        // A channel that no registration has listed, for example a new one, has no filter yet.
        return .waits(lacksFilter: lacksFilter && !eligibility.filters.areStale)
    }

    /// The outcome of a notice's non-persistent entries, after the session has processed it.
    func replyEntries(
        of notice: ChannelNotice, by eligibility: Eligibility, in context: SessionContext
    ) -> NoticeReplyEntries {
        var reply = NoticeReplyEntries()
        let identity = eligibility.identity
        guard identity.isTarget(notice.address.target) else { return reply }
        let key = ChannelKey(kind: notice.address.target.kind, bizType: notice.address.bizType)
        let cursor = cursor(of: notice.channelID)
        // During a registration the eligibility is unknown.
        var mayBeEligible = true
        if cursor != nil, !eligibility.registration.isInFlight,
            case .notEligible = withholding(key, by: eligibility, in: context)
        {
            mayBeEligible = false
        }
        for entry in notice.entries where !entry.isPersistent {
            if cursor?.holdsNonPersistent(entry.id) == true {
                reply.held.append(entry.id.value)
            } else if mayBeEligible, notice.owner.map({ $0 == identity.deviceID }) ?? true,
                entry.skipReason(for: identity.traits, now: context.databaseTime) == nil,
                cursor.flatMap({ eligibility.filters[$0.channelID] })?.flows(entry.id, attributes: entry.attributes)
                    != false
            {
                reply.missed.append(entry.id.value)
            }
        }
        return reply
    }

    // MARK: Pages

    /// The effect of a page.
    enum PageOutcome {
        /// The session does not know the channel.
        case unknown
        /// Another device owns the data.
        case notOwner
        /// The page moved nothing. It is requested again after a delay, or with the notice that it waits for.
        case paused
        /// The data waits for a verdict.
        case awaitsVerdict
        /// The page does not continue the position, or its data is withheld.
        case dropped
        /// The page continues the position. `recalled`: the oplogs that its tombstones name.
        case handedOut([SessionAction], recalled: [OplogID])
    }

    /// Processes a page.
    mutating func apply(
        _ reply: Mss_Bus_V1_FetchReply, channelID: Int64, by eligibility: Eligibility, in context: SessionContext
    ) -> PageOutcome {
        guard let key = keysByChannelID[channelID], cursors[key] != nil else { return .unknown }
        cursors[key]?.isFetching = false
        cursors[key]?.raiseHead(to: OplogID(reply.upto))
        guard !reply.notOwner, let position = cursors[key]?.sent,
            let upto = cursors[key]?.end(of: OplogID(reply.upto), awaiting: reply.awaitedIds.map { OplogID($0) })
        else { return .notOwner }
        let fit = BatchFit(position: position, after: OplogID(reply.after), upto: upto)
        if fit == .known, OplogID(reply.after) == position {
            // The store has less than was announced, after a failover that lost commits. Or the next entry is
            // non-persistent and its notice has not arrived.
            cursors[key]?.isFetching = true
            pausedFetches.append(key)
            return .paused
        }
        // Checked again: reasons to withhold may have appeared while the page was in flight.
        let reason = eligibility.withholding(key, channelID: channelID, in: context)
        if case .awaitsVerdict = reason, fit == .applies {
            cursors[key]?.isFetching = true
            return .awaitsVerdict
        }
        guard fit == .applies, reason == nil else { return .dropped }
        let entries = reply.entries.map(Oplog.init(bus:)).filter { $0.id <= upto }
        var actions: [SessionAction] = []
        var discardedUpto = OplogID.zero
        if reply.discardedUpto > reply.after {
            discardedUpto = OplogID(reply.discardedUpto)
            actions.append(.discarded(channelID: channelID, after: OplogID(reply.after), upto: discardedUpto))
        }
        actions += handOut(
            entries, upto: upto, discardedUpto: discardedUpto, of: key, by: eligibility, in: context)
        cursors[key]?.beganBacklog()
        return .handedOut(actions, recalled: entries.compactMap(\.recalls))
    }

    /// Records that no page came.
    ///
    /// - Returns: whether the session knows the channel.
    mutating func failFetch(channelID: Int64) -> Bool {
        guard let key = keysByChannelID[channelID] else { return false }
        cursors[key]?.isFetching = false
        return true
    }

    /// Ends the pause of a channel's reads.
    ///
    /// - Returns: whether they were paused.
    private mutating func resumeFetch(of key: ChannelKey) -> Bool {
        guard let place = pausedFetches.firstIndex(of: key) else { return false }
        pausedFetches.remove(at: place)
        cursors[key]?.isFetching = false
        return true
    }

    /// Ends the pauses of all channels' reads.
    mutating func resumeFetches() {
        for key in pausedFetches { cursors[key]?.isFetching = false }
        pausedFetches = []
    }

    /// Records that `CaughtUp` must follow the opening backlog.
    mutating func oweCaughtUp() { owesCaughtUp = true }

    /// Requests pages for every channel that is behind and allowed, as far as the send window permits. Sends `CaughtUp`
    /// once.
    mutating func requestPages(by eligibility: Eligibility, in context: SessionContext) -> [SessionAction] {
        let identity = eligibility.identity
        var actions: [SessionAction] = []
        var isCatchingUp = false
        for (key, cursor) in cursors where cursor.isBehind {
            if !eligibility.mayRead(key, channelID: cursor.channelID, in: context) {
                if case .notEligible = eligibility.withholding(key, channelID: cursor.channelID, in: context) {
                    cursors[key]?.suspendBacklog()
                    cursors[key]?.holdsCaughtUp = false
                }
                continue
            }
            isCatchingUp = isCatchingUp || cursor.holdsCaughtUp
            let newestUpto = cursors[key]?.openBacklog()
            guard !cursor.isFetching, hasRoom(in: context) else { continue }
            var newest = 0
            if newestUpto != nil,
                case .threshold(let count)? = context.rules(of: key, in: identity.instanceID)?.repush
            {
                newest = count
            }
            cursors[key]?.isFetching = true
            actions.append(
                .fetch(
                    PageRequest(
                        channelID: cursor.channelID, isGlobal: key.kind.isGlobal, after: cursor.sent, head: cursor.head,
                        newest: newest, newestUpto: newestUpto ?? .zero, traits: identity.traits,
                        onlyOwner: eligibility.onlyOwner(key, in: context),
                        filters: newest > 0 ? eligibility.filters[cursor.channelID] : nil,
                        bindNumber: identity.bindNumber)))
        }
        if owesCaughtUp, !isCatchingUp {
            owesCaughtUp = false
            for key in cursors.keys { cursors[key]?.holdsCaughtUp = false }
            actions.append(.send(.with { $0.caughtUp.bindNumber = identity.bindNumber }))
        }
        return actions
    }

    // MARK: Hand-out

    private mutating func handOut(
        _ entries: [Oplog], upto: OplogID, discardedUpto: OplogID = .zero, of key: ChannelKey,
        by eligibility: Eligibility, in context: SessionContext
    ) -> [SessionAction] {
        guard var cursor = cursors[key] else { return [] }
        let taken = cursor.accept(
            upto: upto, entries: entries, discardedUpto: discardedUpto, device: eligibility.identity.traits,
            now: context.databaseTime, filters: eligibility.filters[cursor.channelID], batchEntries: batchEntries)
        var actions: [SessionAction] = taken.skipped.filter(\.key.isRecorded).map { reason, ids in
            .skipped(ids, because: reason, channelID: cursor.channelID)
        }
        if taken.batches.isEmpty {
            cursor.raiseStored()
            cursors[key] = cursor
            return actions + report(of: key, by: eligibility, in: context)
        }
        actions += push(taken.batches, of: key, &cursor, to: eligibility.identity)
        cursors[key] = cursor
        return actions
    }

    /// The push actions for batches that a cursor handed out.
    private mutating func push(
        _ batches: [ChannelCursor.Taken.Batch], of key: ChannelKey, _ cursor: inout ChannelCursor,
        to identity: SessionIdentity
    ) -> [SessionAction] {
        var actions: [SessionAction] = []
        for batch in batches {
            used += batch.entries.reduce(0) { $0 + $1.payload.count }
            var message = Mss_Device_V1_ChannelBatch(
                key, of: identity, after: batch.after, upto: batch.upto, entries: batch.entries,
                passedOverUpto: batch.passedOverUpto)
            message.againUpto = cursor.againUpto(above: batch.after).value
            if let numbered = cursor.resends?.sent(message, of: batch.entries) { message = numbered }
            let pushes = batch.entries.filter { $0.recalls == nil }.map(\.id)
            actions.append(.push(message, handedOut: pushes, channelID: cursor.channelID))
        }
        return actions
    }
}
