import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The session of a device whose Connect was accepted: passes events to the parts of the session, and their effects
/// from one part to another.
///
/// The rules are checked for every batch, not once at connect: configuration online, lease held, verdict valid, device
/// matching (Design.md#eligibility). Withheld data stays in the database. The cursor stays before it and continues when
/// the reason ends.
struct DeviceSession {
    var eligibility: Eligibility
    var window: DeliveryWindow
    var verdicts = VerdictQueue()
    var rereads = SessionRereads()
    private var requests = SessionRequests()
    /// Operations of the current bind that are in flight to the relay.
    private(set) var operations: SessionOperations
    private(set) var parameters: ParameterKeeping
    /// When the registration and the reads that failed are repeated; nil: nothing failed.
    private(set) var retryAt: ContinuousClock.Instant?
    private let limits: SessionLimits

    /// - Parameter unproven: the numbers of frames that the device sent before its Connect was accepted.
    init(
        _ identity: SessionIdentity, after unproven: UnprovenConnect.Numbers, limits: SessionLimits, batchEntries: Int
    ) {
        eligibility = Eligibility(identity)
        window = DeliveryWindow(limits: limits, batchEntries: batchEntries)
        operations = unproven.operations
        parameters = unproven.parameters
        self.limits = limits
    }

    var identity: SessionIdentity { eligibility.identity }
    var registration: SessionRegistration { eligibility.registration }

    /// Processes an event that is not about the connection as such.
    ///
    /// - Returns: the actions in order. A close ends the session.
    mutating func handle(_ event: SessionEvent, in context: SessionContext) -> [SessionAction] {
        switch event {
        case .frame(let packet): return receive(packet, in: context)
        case .registered(let reply?, let bindNumber): return registered(reply, bindNumber: bindNumber, in: context)
        case .registered(nil, _): return registrationFailed(in: context)
        case .validated(let reply, let bindNumber, let askedAt):
            return validated(reply, bindNumber: bindNumber, askedAt: askedAt, in: context)
        case .fetched(_, let channelID, let bindNumber) where !isOfThisBind(channelID, bindNumber): return []
        case .fetched(let page?, let channelID, _): return fetched(page, channelID: channelID, in: context)
        case .fetched(nil, let channelID, _):
            if window.failFetch(channelID: channelID) { retryAt = context.now + limits.retryDelay }
            return []
        case .historyRead(let page, let id): return historyRead(page, of: id, in: context)
        case .summaryRead(let page, let id): return summaryRead(page, of: id, in: context)
        case .resendRecorded(let channelID, let oplogID, let repeats):
            return resendRecorded(channelID: channelID, oplogID: oplogID, repeats: repeats, in: context)
        case .operationsAnswered(let reply, let number):
            guard registration.isOpen, !verdicts.holdsOperations else { return [] }
            return operations.answer(reply, number: number)
        case .parametersKept(let isKept, let number):
            guard registration.isOpen, let answer = parameters.answer(isKept, number: number) else { return [] }
            return [answer] + (isKept ? registerAgain(in: context) : [])
        case .noticed(let notice): return noticed(notice, in: context)
        case .superseded(let epoch):
            guard eligibility.registration.supersede(by: epoch) else { return [] }
            return [.close(.superseded, "a newer connection of this device is open")]
        case .rereadWaiting, .registrationDue: return registerAgain(in: context)
        case .invalidated(let userID, let digest, let reason):
            return invalidated(userID, digest: digest, reason: reason, in: context)
        case .revoked(let userID, let digest): return revoked(userID, digest: digest, in: context)
        case .disconnectedByOperator: return [.close(.disconnected, "an operator ended the connection")]
        case .contextChanged: return contextChanged(in: context)
        case .roomGrew: return readOn(in: context)
        case .ticked: return ticked(in: context)
        case .surplus:
            guard registration.isOpen, window.used == 0, !registration.isInFlight else { return [] }
            return [.close(.surplus, "this gateway has more devices than others")]
        case .brokenFrame, .overRate, .disconnected, .claimed, .drained: return []
        }
    }

    // MARK: Frames

    /// Processes a frame of the device, other than those of the connection as such.
    mutating func receive(_ packet: Mss_Device_V1_Packet, in context: SessionContext) -> [SessionAction] {
        switch packet.body {
        case .bind(let bind): return receive(bind, in: context)
        case .foreground(let state): return receive(foreground: state.foreground, in: context)
        case .subscriptions(let subscriptions): return receive(subscriptions, in: context)
        case .historyRequest(let request):
            return requests.readHistory(request, of: window, by: eligibility, in: context)
        case .summaryRequest(let request):
            return requests.readSummary(request, of: window, by: eligibility, in: context)
        case .submitOperations(let frame):
            return perform(operations.receive(frame, by: eligibility, in: context), of: packet, in: context)
        case .keepParameters(let frame):
            return perform(parameters.receive(frame, by: eligibility, in: context), of: packet, in: context)
        case .storedAck(let ack): return registration.isOpen ? receive(ack, in: context) : []
        case .confirmReport(let report): return registration.isOpen ? receive(report, in: context) : []
        default:
            // A body that this build does not know, or that only a gateway sends, is ignored, so that newer devices
            // work.
            return []
        }
    }

    private mutating func receive(_ bind: Mss_Device_V1_Bind, in context: SessionContext) -> [SessionAction] {
        guard bind.bindNumber > identity.bindNumber else {
            return [.close(.protocolViolation, "bind_number must rise")]
        }
        guard ConnectCheck.spend(on: bind, to: identity.instanceID, in: context) else { return [.sharedRateUsedUp] }
        guard let parameters = ConnectCheck.parameters(bind.parameters) else { return [.parametersRefused] }
        eligibility.identity.subscriptions.parameters = parameters
        return apply(bind, in: context)
    }

    /// Switches to the user of a bind, or refuses a bind that exceeds a limit.
    mutating func apply(_ bind: Mss_Device_V1_Bind, in context: SessionContext) -> [SessionAction] {
        if let reason = ConnectCheck.refusal(of: bind, to: identity.instanceID, in: context) {
            return [
                .send(.bindResult(bind.bindNumber, refusedBecause: reason)), .close(.protocolViolation, reason),
            ]
        }
        forgetUser()
        eligibility.identity.userID = bind.userID.isEmpty ? nil : UserID(bind.userID)
        eligibility.identity.sessionID = bind.sessionID
        eligibility.identity.bindNumber = bind.bindNumber
        window.addReportedPoints(bind.syncPoints, needingUser: true)
        eligibility.registration.addBind()
        let latestOwns = context.instance(identity.instanceID)?.latestConnectionOwns == true
        eligibility.ownership = Ownership(of: bind, latestConnectionOwns: latestOwns)
        return releaseParked(in: context) + register(in: context) + eligibility.validate(in: context)
    }

    private mutating func forgetUser() {
        window.forgetUser()
        eligibility.ownership = Ownership()
        verdicts.forgetUser()
        rereads.forgetUser()
        eligibility.check = SessionCheck()
        operations.forgetUser()
        eligibility.filters.forgetUser()
        parameters.forgetUser()
    }

    private mutating func receive(foreground: Bool, in context: SessionContext) -> [SessionAction] {
        guard identity.isForeground != foreground else { return [] }
        eligibility.identity.isForeground = foreground
        guard registration.isOpen else { return [] }
        // Global oplogs wait for the foreground (D15). An update that overtakes a registration may find no session.
        guard !foreground, !registration.isInFlight else { return registerAgain(in: context) }
        return [eligibility.updateAction(in: context)]
    }

    private mutating func receive(
        _ subscriptions: Mss_Device_V1_Subscriptions, in context: SessionContext
    ) -> [SessionAction] {
        guard let suspended = ConnectCheck.suspended(subscriptions.suspended) else { return [.suspensionsRefused] }
        guard let parameters = ConnectCheck.parameters(subscriptions.parameters) else { return [.parametersRefused] }
        let current = identity.subscriptions
        guard current.suspended != suspended || current.parameters != parameters else { return [] }
        eligibility.identity.subscriptions.suspended = suspended
        eligibility.identity.subscriptions.parameters = parameters
        let actions = readOn(in: context)
        // A registration, not an update: registrations are ordered, so the store has the newest lists even if one is
        // lost.
        return actions + registerAgain(in: context)
    }

    /// Performs the effect of a request that may have to wait for a verdict. Without a verdict request in flight, it is
    /// refused, so that the device repeats it.
    mutating func perform(
        _ outcome: UserWriteOutcome, of request: @autoclosure () -> Mss_Device_V1_Packet, in context: SessionContext
    ) -> [SessionAction] {
        switch outcome {
        case .actions(let actions): return actions
        case .awaitsVerdict(let refusal):
            let question = eligibility.requestVerdict(in: context)
            guard eligibility.check.isAsking else { return [refusal] }
            let request = request()
            verdicts.hold(request)
            if case .submitOperations(let frame)? = request.body { operations.hold(frame) }
            if case .keepParameters? = request.body { parameters.hold() }
            return question
        }
    }

    /// Processes a kept request of the device again, after a verdict.
    mutating func repeatRequest(_ request: Mss_Device_V1_Packet, in context: SessionContext) -> [SessionAction] {
        switch request.body {
        case .submitOperations(let frame)?:
            perform(operations.submit(frame, by: eligibility, in: context), of: request, in: context)
        case .keepParameters(let frame)?:
            perform(parameters.keep(frame, by: eligibility, in: context), of: request, in: context)
        case .confirmReport(let report)?: receive(report, in: context)
        default: []
        }
    }

    // MARK: Channels

    private mutating func noticed(_ notice: ChannelNotice, in context: SessionContext) -> [SessionAction] {
        guard eligibility.identity.isTarget(notice.address.target) else { return [] }
        dropRecalled(notice.entries.compactMap(\.recalls), channelID: notice.channelID)
        switch window.apply(notice, by: eligibility, in: context) {
        case .recorded: return []
        case .handedOut(let actions, let resumes): return resumes ? actions + readOn(in: context) : actions
        case .otherOwner: return recheckOwnership(in: context)
        case .waits(let lacksFilter):
            return lacksFilter && registration.isOpen ? registerAgain(in: context) : readOn(in: context)
        }
    }

    /// Whether a page belongs to the channel's current cursor. A cursor of an earlier bind may have recorded a recall
    /// that this one does not know.
    private func isOfThisBind(_ channelID: Int64, _ bindNumber: UInt32) -> Bool {
        window.keysByChannelID[channelID]?.kind.needsUser != true || bindNumber == identity.bindNumber
    }

    /// Processes a page.
    mutating func fetched(
        _ reply: Mss_Bus_V1_FetchReply, channelID: Int64, in context: SessionContext
    ) -> [SessionAction] {
        guard registration.isOpen else { return [] }
        switch window.apply(reply, channelID: channelID, by: eligibility, in: context) {
        case .unknown: return []
        case .notOwner: return recheckOwnership(in: context) + readOn(in: context)
        case .paused:
            retryAt = retryAt ?? context.now + limits.retryDelay
            return []
        case .awaitsVerdict: return park(.page(reply, channelID: channelID), in: context)
        case .dropped: return readOn(in: context)
        case .handedOut(let actions, let recalled):
            dropRecalled(recalled, channelID: channelID)
            return actions + readOn(in: context)
        }
    }

    /// Drops recalled oplogs from re-reads and answers, so that they do not follow their tombstones (H7).
    private mutating func dropRecalled(_ ids: [OplogID], channelID: Int64) {
        for id in ids {
            rereads.recall(id, channelID: channelID)
            requests.recall(id, channelID: channelID)
        }
    }

    /// Reports unreported progress, and reads on in every channel as far as the rules and the send window permit.
    mutating func readOn(in context: SessionContext) -> [SessionAction] {
        guard registration.isOpen, !registration.isInFlight else { return [] }
        var actions =
            window.reportOwed(by: eligibility, in: context)
            + rereads.report(by: eligibility, in: context)
        // Without free capacity, data would be withdrawn and read again without end.
        if context.room > 0 {
            let (pushes, awaitsVerdict) = rereads.send(channels: window.keysByChannelID, by: eligibility, in: context)
            actions += (awaitsVerdict ? eligibility.requestVerdict(in: context) : []) + pushes
        }
        return actions + window.requestPages(by: eligibility, in: context)
    }

    /// Processes a page of history or its absence.
    mutating func historyRead(
        _ reply: Mss_Bus_V1_HistoryReply?, of id: UInt64, in context: SessionContext
    ) -> [SessionAction] {
        guard registration.isOpen else { return [] }
        return answer(requests.answerHistory(reply, of: id, in: window, by: eligibility, in: context), in: context)
    }

    /// Processes the summary of channels or its absence.
    mutating func summaryRead(
        _ reply: Mss_Bus_V1_SummaryReply?, of id: UInt64, in context: SessionContext
    ) -> [SessionAction] {
        guard registration.isOpen else { return [] }
        return answer(requests.answerSummary(reply, of: id, in: window, by: eligibility, in: context), in: context)
    }

    private mutating func answer(_ outcome: SessionRequests.Outcome, in context: SessionContext) -> [SessionAction] {
        switch outcome {
        case .answered(let actions): actions
        case .awaitsVerdict(let read): park(read, in: context)
        case .notOwner(let actions): actions + recheckOwnership(in: context)
        }
    }

    // MARK: Time

    private mutating func ticked(in context: SessionContext) -> [SessionAction] {
        var actions = eligibility.validateWhenDue(of: window.cursors.keys, in: context)
        if let due = retryAt, due <= context.now {
            retryAt = nil
            window.resumeFetches()
            let registers = registration.needsRetry && !registration.isInFlight
            actions += registers ? register(in: context) : readOn(in: context)
        }
        guard registration.isOpen, identity.isSimple else { return actions }
        let resends = window.resendDue(by: eligibility, in: context)
        return actions + (resends.isEmpty ? [] : resends + readOn(in: context))
    }

    /// Schedules another registration after a failure.
    mutating func registrationFailed(in context: SessionContext) -> [SessionAction] {
        eligibility.registration.fail()
        retryAt = context.now + limits.retryDelay
        return []
    }
}
