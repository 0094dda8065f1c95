import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// One connection of a client from its first frame to its end: events in, actions out, no I/O and no clock.
struct ClientStateMachine {
    /// Where the connection is in its life.
    enum Phase: Hashable, Sendable {
        /// Nothing has been sent. Exits: greeting (opened).
        case idle
        /// Connect is on its way. Exits: open (Connected), ended (anything fatal, deadline).
        case greeting
        /// In service. Exits: ended.
        case open
        /// Over; every event is ignored. No exit.
        case ended
    }

    /// The user of this connection, as far as the gateway knows.
    private struct Binding {
        var number: UInt32 = 0
        var user: BoundUser?
        var isAccepted = false
    }

    /// What the app did, on its way to the gateway; one report at a time.
    private struct Report {
        let id: UInt64
        let content: OplogReport
        let userID: String?
        let sentAt: ContinuousClock.Instant
    }

    /// After a ping, or a Connect, the gateway is given this long to say anything.
    static let answerLimit = Duration.seconds(10)
    /// A report that is not answered within this time is sent again.
    static let reportLimit = Duration.seconds(30)
    /// When the gateway names none.
    private static let defaultHeartbeat = Duration.seconds(60)

    private(set) var phase = Phase.idle
    private var binding = Binding()
    private var report: Report?
    private var lastReportID: UInt64 = 0
    private var requests = ClientRequests()
    private var operations = ClientOperations()
    private var parameters = ClientParameters()
    /// Nil until the gateway has greeted.
    private(set) var heartbeat: Heartbeat?
    private let learnedHeartbeat: Heartbeat.Learned
    private var isForeground = true
    /// The interval that the gateway knows of.
    private var toldInterval = Duration.zero
    /// When a ping went out that has no answer yet, and how idle the connection was before.
    private var ping: (sentAt: ContinuousClock.Instant, idle: Duration)?
    private var lastFrame: ContinuousClock.Instant?
    private var nextPing: ContinuousClock.Instant?
    private var answerDeadline: ContinuousClock.Instant?
    private var lastPing: UInt64 = 0

    /// When `ticked` is to be called at the latest; nil when there is nothing to wait for.
    var deadline: ContinuousClock.Instant? {
        [
            nextPing, answerDeadline, report.map { $0.sentAt + Self.reportLimit }, requests.deadline,
            operations.deadline, parameters.deadline,
        ].compactMap { $0 }.min()
    }

    /// - Parameter learnedHeartbeat: what is known of the network.
    init(learnedHeartbeat: Heartbeat.Learned = Heartbeat.Learned()) { self.learnedHeartbeat = learnedHeartbeat }

    /// Whose data answers to present questions may hold, and whom the gateway refuses when it ends this connection.
    var boundUser: BoundUser? { binding.user }

    /// The user whose data may come in now.
    private var acceptedUserID: String? { binding.isAccepted ? binding.user?.userID : nil }

    // MARK: Events of the connection

    /// The transport is up.
    ///
    /// - Parameters:
    ///   - connect: the first frame without a bind.
    ///   - user: bound at once, when there is one.
    ///   - points: the user's sync points.
    mutating func opened(
        _ connect: Mss_Device_V1_Connect, user: BoundUser?, points: [Mss_Device_V1_SyncPoint],
        now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .idle else { return [] }
        phase = .greeting
        answerDeadline = now + Self.answerLimit
        isForeground = !connect.background
        var connect = connect
        if let user {
            binding = Binding(number: 1, user: user)
            connect.bind = bindFrame(points)
        }
        return [.send(.with { $0.connect = connect })]
    }

    /// A frame came in.
    mutating func received(_ packet: Mss_Device_V1_Packet, now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .greeting || phase == .open else { return [] }
        if phase == .open { heard(now) }
        switch packet.body {
        case .connected(let connected): return received(connected, now: now)
        case .bindResult(let result): return received(result)
        case .push(let push): return received(push)
        case .confirmRecorded(let recorded): return received(recorded)
        case .caughtUp(let mark):
            guard mark.bindNumber == binding.number else { return [] }
            return [.caughtUp(userID: acceptedUserID)]
        case .sessionState(let state):
            guard state.bindNumber == binding.number, state.validity == .invalid, let user = binding.user else {
                return []
            }
            return [.notify(.sessionInvalid(userID: user.userID, reason: state.reason))]
        case .ping(let ping):
            return [.send(.with { $0.pong.number = ping.number })]
        case .close(let close):
            return received(close)
        case .historyPage(let page):
            return answered(page.requestNumber, .history(page), now: now)
        case .summaryPage(let page):
            return answered(page.requestNumber, .summary(page), now: now)
        case .operationsTaken(let reply):
            return received(reply, now: now)
        case .parametersKept(let reply):
            guard phase == .open, let answer = parameters.answered(reply, now: now) else { return [] }
            return [.parametersAnswered(answer)] + hasParameters(now: now)
        case .userParameters(let list):
            guard list.bindNumber == binding.number, let userID = acceptedUserID else { return [] }
            return [.learnParameters(list, userID: userID)]
        case .ownershipTaken(let taken):
            guard taken.bindNumber == binding.number, let request = binding.user?.request else { return [] }
            return [.ownershipTaken(request: request, epoch: taken.ownershipEpoch)]
        case .connect, .bind, .storedAck, .confirmReport, .foreground, .pong, .subscriptions, .historyRequest,
            .summaryRequest, .submitOperations, .keepParameters, nil:
            // A pong has done its work by being heard; the others, and bodies of later versions, are ignored.
            return []
        }
    }

    private mutating func received(
        _ connected: Mss_Device_V1_Connected, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .greeting else { return end(.lost(reason: "the gateway greeted twice")) }
        phase = .open
        answerDeadline = nil
        lastFrame = now
        let usual =
            connected.heartbeatSeconds > 0
            ? Duration.seconds(Int64(min(connected.heartbeatSeconds, 3_600))) : Self.defaultHeartbeat
        let heartbeat = Heartbeat(
            usual: usual, longest: .seconds(Int64(min(connected.maxHeartbeatSeconds, 3_600))),
            learned: learnedHeartbeat)
        self.heartbeat = heartbeat
        toldInterval = usual
        nextPing = now + min(usual, heartbeat.interval(inForeground: isForeground))
        let firstResend = Duration.milliseconds(Int64(connected.firstResendMs))
        let time = connected.serverTimeMs > 0 ? WallTime(milliseconds: connected.serverTimeMs) : nil
        return [.connected(firstResend: firstResend > .zero ? firstResend : nil, serverTime: time), collect]
    }

    private mutating func received(_ close: Mss_Device_V1_Close) -> [ClientAction] {
        var actions: [ClientAction] = []
        if close.serverTimeMs > 0 { actions.append(.signBy(WallTime(milliseconds: close.serverTimeMs))) }
        if close.code == CloseCode.registerAnew.rawValue { actions.append(.takeNewIdentity) }
        return actions
            + end(
                .closed(
                    code: close.code, reason: close.reason, retryAfter: .milliseconds(Int64(close.retryAfterMs)),
                    address: close.address))
    }

    private mutating func received(_ result: Mss_Device_V1_BindResult) -> [ClientAction] {
        guard result.bindNumber == binding.number, let user = binding.user, !binding.isAccepted else { return [] }
        guard result.accepted else {
            return [.notify(.bindRefused(userID: user.userID, reason: result.reason))]
        }
        binding.isAccepted = true
        return [
            .notify(.bound(userID: user.userID)), collect, .collectOperations(userID: user.userID),
            .collectParameters(userID: user.userID),
        ]
    }

    private mutating func received(_ push: Mss_Device_V1_Push) -> [ClientAction] {
        guard phase == .open else { return end(.lost(reason: "the gateway pushed before it greeted")) }
        let batches = push.batches.filter { batch in
            guard let kind = SyncModel.ChannelKind(wire: batch.kind) else { return false }
            #if KNOWN_BAD
                if KnownBad.clientBindNotCompared.isOn { return true }
            #endif
            // Frames of an earlier bind are late; they come again when that user is bound again.
            return !kind.needsUser || (binding.isAccepted && batch.bindNumber == binding.number)
        }
        guard !batches.isEmpty else { return [] }
        #if KNOWN_BAD
            if KnownBad.clientBindNotCompared.isOn {
                return [.store(batches, userID: binding.user?.userID, bindNumber: binding.number)]
            }
        #endif
        return [.store(batches, userID: acceptedUserID, bindNumber: binding.number)]
    }

    private mutating func received(_ recorded: Mss_Device_V1_ConfirmRecorded) -> [ClientAction] {
        guard let sent = report, sent.id == recorded.reportID else { return [] }
        report = nil
        return [.recorded(sent.content, userID: sent.userID), collect]
    }

    // MARK: Events of the client

    /// The batches are on disk as far as they applied.
    ///
    /// - Parameter rereads: numbers of the re-reads among them.
    mutating func stored(
        _ channels: [Mss_Device_V1_StoredUpto], rereads: [UInt64], foundGap: Bool
    ) -> [ClientAction] {
        guard phase == .open else { return [] }
        var actions: [ClientAction] = []
        if !channels.isEmpty || !rereads.isEmpty {
            actions.append(
                .send(
                    .with {
                        $0.storedAck.channels = channels
                        $0.storedAck.rereads = rereads
                    }))
        }
        return foundGap ? actions + end(.gap) : actions
    }

    /// The app has bound another user or session, the same anew, or none.
    mutating func userChanged(
        to user: BoundUser?, points: [Mss_Device_V1_SyncPoint], parameters told: [Mss_Device_V1_Parameter] = [],
        now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .greeting || phase == .open, user != binding.user || isRequestedAnew(user) else { return [] }
        binding = Binding(number: binding.number + 1, user: user)
        // A report of the former user may be answered or not; what it carried is collected again when the user is back.
        report = nil
        operations.userChanged()
        parameters.userChanged()
        var bind = bindFrame(points)
        bind.parameters = told
        let unanswered = requests.takeAll().map { ClientAction.answered(ticket: $0, .none) }
        return unanswered + [.send(.with { $0.bind = bind })] + (phase == .open ? [collect] : [])
    }

    /// The app came to the foreground, or left it.
    mutating func foregroundChanged(to isForeground: Bool, now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .greeting || phase == .open, isForeground != self.isForeground else { return [] }
        self.isForeground = isForeground
        if let heartbeat, let nextPing {
            self.nextPing = min(nextPing, now + heartbeat.interval(inForeground: isForeground))
        }
        return [.send(.with { $0.foreground.foreground = isForeground })]
    }

    /// The app takes other business types than before.
    func subscriptionsChanged(
        suspended: [String], parameters: [Mss_Device_V1_Parameter] = []
    ) -> [ClientAction] {
        guard phase == .greeting || phase == .open else { return [] }
        return [
            .send(
                .with {
                    $0.subscriptions.suspended = suspended
                    $0.subscriptions.parameters = parameters
                })
        ]
    }

    // MARK: Parameters

    /// Values may wait that the service is to keep.
    func hasParameters(now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .open, let userID = acceptedUserID, parameters.isFree(at: now) else { return [] }
        return [.collectParameters(userID: userID)]
    }

    /// What `collectParameters` found.
    mutating func collected(
        parameters found: [DeviceParameter], ofUser userID: String, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .open, acceptedUserID?.isSame(as: userID) == true, !found.isEmpty, parameters.isFree(at: now)
        else { return [] }
        return [.send(parameters.send(found, ofUser: userID, bindNumber: binding.number, now: now))]
    }

    // MARK: Questions

    /// Asks the gateway; the answer, or that there is none, comes as an action.
    mutating func ask(
        _ question: ClientRequests.Question, ticket: UInt64, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .open else { return [.answered(ticket: ticket, .none)] }
        requests.ask(question, ticket: ticket)
        return sendRequests(now: now)
    }

    private mutating func answered(
        _ number: UInt32, _ answer: ClientRequests.Answer, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard let ticket = requests.answered(number) else { return [] }
        return [.answered(ticket: ticket, answer)] + sendRequests(now: now)
    }

    private mutating func sendRequests(now: ContinuousClock.Instant) -> [ClientAction] {
        requests.next(bindNumber: binding.number, now: now).map { .send($0) }
    }

    // MARK: Operations

    /// Operations of the user may wait.
    func hasOperations(now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .open, let userID = acceptedUserID, operations.isFree(at: now) else { return [] }
        return [.collectOperations(userID: userID)]
    }

    /// What `collectOperations` found.
    mutating func collected(
        _ found: [DeviceOperation], ofUser userID: String, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .open, acceptedUserID?.isSame(as: userID) == true, !found.isEmpty, operations.isFree(at: now)
        else { return [] }
        return [.send(operations.send(found, bindNumber: binding.number, now: now))]
    }

    private mutating func received(
        _ reply: Mss_Device_V1_OperationsTaken, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .open, let answer = operations.answered(reply, now: now) else { return [] }
        return [.operationsAnswered(answer)] + hasOperations(now: now)
    }

    /// The app has confirmed something, was given something again, or something was given up.
    func hasNews() -> [ClientAction] {
        phase == .open && report == nil ? [collect] : []
    }

    /// What `collectReport` found.
    mutating func collected(_ content: OplogReport, now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .open, report == nil, !content.isEmpty else { return [] }
        lastReportID += 1
        let sent = Report(id: lastReportID, content: content, userID: acceptedUserID, sentAt: now)
        report = sent
        return [
            .send(
                .with {
                    $0.confirmReport.reportID = sent.id
                    $0.confirmReport.channels = content.confirmed
                    $0.confirmReport.resent = content.resent
                })
        ]
    }

    /// `deadline` has come, or some time has passed.
    mutating func ticked(now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .greeting || phase == .open else { return [] }
        if let answerDeadline, now >= answerDeadline {
            if let ping { heartbeat?.failed(after: ping.idle) }
            return end(.silent)
        }
        // First, so that whoever waits hears of it whatever becomes of the rest.
        let overdue = requests.takeOverdue(at: now)
        var actions = overdue.map { ClientAction.answered(ticket: $0, .none) }
        if !overdue.isEmpty { actions += sendRequests(now: now) }
        if let heartbeat, let nextPing, now >= nextPing {
            actions.append(sendPing(every: heartbeat.interval(inForeground: isForeground), now: now))
        }
        if let sent = report, now >= sent.sentAt + Self.reportLimit {
            report = nil
            actions.append(collect)
        }
        if operations.isOverdue(at: now) || parameters.isOverdue(at: now) { return actions + end(.silent) }
        if parameters.isDue(at: now) { actions += hasParameters(now: now) }
        return operations.isDue(at: now) ? actions + hasOperations(now: now) : actions
    }

    private mutating func sendPing(every interval: Duration, now: ContinuousClock.Instant) -> ClientAction {
        lastPing += 1
        nextPing = now + interval
        answerDeadline = answerDeadline ?? now + Self.answerLimit
        ping = (now, (lastFrame ?? now).duration(to: now))
        let isNews = interval != toldInterval
        toldInterval = interval
        return .send(
            .with {
                $0.ping.number = lastPing
                if isNews { $0.ping.intervalSeconds = UInt32(clamping: interval.components.seconds) }
            })
    }

    /// Anything came in.
    private mutating func heard(_ now: ContinuousClock.Instant) {
        answerDeadline = nil
        lastFrame = now
        guard let ping else { return }
        self.ping = nil
        heartbeat?.answered(after: ping.idle)
    }

    // MARK: Parts

    private var collect: ClientAction { .collectReport(userID: acceptedUserID, bindNumber: binding.number) }

    private func bindFrame(_ points: [Mss_Device_V1_SyncPoint]) -> Mss_Device_V1_Bind {
        .with {
            $0.bindNumber = binding.number
            $0.userID = binding.user?.userID ?? ""
            $0.sessionID = binding.user?.sessionID ?? ""
            $0.syncPoints = points
            $0.requestedByApp = binding.user?.request != nil
            $0.ownershipEpoch = binding.user?.ownershipEpoch ?? 0
        }
    }

    /// Whether the app has bound the user once more: this device is to take the user's single-device data over.
    private func isRequestedAnew(_ user: BoundUser?) -> Bool {
        user?.request != nil && user?.request != binding.user?.request
    }

    /// The connection is to end for this reason.
    mutating func end(_ end: ConnectionEnd) -> [ClientAction] {
        phase = .ended
        nextPing = nil
        answerDeadline = nil
        report = nil
        return requests.takeAll().map { .answered(ticket: $0, .none) } + [.end(end)]
    }
}
