import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// One connection of a client, from its first frame to its end. It turns events into actions, without I/O and without a
/// clock.
struct ClientStateMachine {
    /// The phase of a connection.
    enum Phase: Hashable, Sendable {
        /// No frame has been sent. Next: `greeting` (`opened`).
        case idle
        /// Connect has been sent. Next: `open` (Connected), `ended` (fatal error, timeout).
        case greeting
        /// The gateway has accepted the connect. Next: `ended`.
        case open
        /// The connection is over, and every event is ignored.
        case ended
    }

    /// The user of this connection, as the gateway knows it.
    private struct Binding {
        var number: UInt32 = 0
        var user: BoundUser?
        var isAccepted = false
    }

    private(set) var phase = Phase.idle
    private var binding = Binding()
    private var reports = ClientReports()
    private var requests = ClientRequests()
    private var operations = ClientOperations()
    private var parameters = ClientParameters()
    private var pings: ClientPings

    /// The latest time of the next `ticked` call; nil when nothing is pending.
    var deadline: ContinuousClock.Instant? {
        [pings.deadline, reports.deadline, requests.deadline, operations.deadline, parameters.deadline]
            .compactMap { $0 }.min()
    }

    /// - Parameter learnedHeartbeat: the results of earlier pings on the network.
    init(learnedHeartbeat: Heartbeat.Learned = Heartbeat.Learned()) {
        pings = ClientPings(learned: learnedHeartbeat)
    }

    /// The ping interval and its results; nil until the gateway has accepted the connect.
    var heartbeat: Heartbeat? { pings.heartbeat }

    /// The user whose data the replies can contain. A demand for a new sign-in at the end of the connection also
    /// concerns this user.
    var boundUser: BoundUser? { binding.user }

    /// The user whose data can arrive now.
    private var acceptedUserID: String? { binding.isAccepted ? binding.user?.userID : nil }

    // MARK: Events of the connection

    /// Sends Connect on a new transport connection.
    ///
    /// - Parameters:
    ///   - connect: the first frame without a bind.
    ///   - user: the user to bind in the same frame; nil for none.
    ///   - points: the user's sync points.
    mutating func opened(
        _ connect: Mss_Device_V1_Connect, user: BoundUser?, points: [Mss_Device_V1_SyncPoint],
        now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .idle else { return [] }
        phase = .greeting
        pings.awaitConnected(inForeground: !connect.background, now: now)
        var connect = connect
        if let user {
            binding = Binding(number: 1, user: user)
            connect.bind = bindFrame(points)
        }
        return [.send(.with { $0.connect = connect })]
    }

    /// Handles a received frame.
    mutating func received(_ packet: Mss_Device_V1_Packet, now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .greeting || phase == .open else { return [] }
        if phase == .open { pings.heard(now) }
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
            return [.replaceParameters(list, userID: userID)]
        case .ownershipTaken(let taken):
            guard taken.bindNumber == binding.number, let request = binding.user?.request else { return [] }
            return [.ownershipTaken(request: request, epoch: taken.ownershipEpoch)]
        case .connect, .bind, .storedAck, .confirmReport, .foreground, .pong, .subscriptions, .historyRequest,
            .summaryRequest, .submitOperations, .keepParameters, nil:
            // A pong only counts as a received frame. The other bodies, and those of later versions, are ignored.
            return []
        }
    }

    private mutating func received(
        _ connected: Mss_Device_V1_Connected, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .greeting else { return end(.lost(reason: "the gateway sent Connected twice")) }
        phase = .open
        pings.start(connected, now: now)
        let firstResend = Duration.milliseconds(Int64(connected.firstResendMs))
        let time = connected.serverTimeMs > 0 ? WallTime(milliseconds: connected.serverTimeMs) : nil
        return [.connected(firstResend: firstResend > .zero ? firstResend : nil, serverTime: time), collect]
    }

    private mutating func received(_ close: Mss_Device_V1_Close) -> [ClientAction] {
        var actions: [ClientAction] = []
        if close.serverTimeMs > 0 { actions.append(.setSigningTime(WallTime(milliseconds: close.serverTimeMs))) }
        if close.code == CloseCode.registerAnew.rawValue { actions.append(.replaceIdentity) }
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
        guard phase == .open else { return end(.lost(reason: "the gateway sent Push before Connected")) }
        let batches = push.batches.filter { batch in
            guard let kind = SyncModel.ChannelKind(wire: batch.kind) else { return false }
            // Frames of an earlier bind are late. The gateway sends their data again when that user is bound.
            return !kind.needsUser || (binding.isAccepted && batch.bindNumber == binding.number)
        }
        guard !batches.isEmpty else { return [] }
        return [.store(batches, userID: acceptedUserID, bindNumber: binding.number)]
    }

    private mutating func received(_ recorded: Mss_Device_V1_ConfirmRecorded) -> [ClientAction] {
        guard let sent = reports.recorded(recorded.reportID) else { return [] }
        return [.recorded(sent.content, userID: sent.userID), collect]
    }

    // MARK: Events of the client

    /// Acknowledges stored batches.
    ///
    /// - Parameters:
    ///   - channels: the stored positions.
    ///   - rereads: the numbers of the stored re-reads.
    ///   - foundGap: whether a batch began above the position of its channel.
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

    /// Binds another user or session, or the same one again; nil unbinds.
    mutating func userChanged(
        to user: BoundUser?, points: [Mss_Device_V1_SyncPoint],
        parameters newParameters: [Mss_Device_V1_Parameter] = [],
        now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .greeting || phase == .open, user != binding.user || isRequestedAnew(user) else { return [] }
        binding = Binding(number: binding.number + 1, user: user)
        // The report of the former user may never be answered. Its content is collected again when that user is bound.
        reports.removeAll()
        operations.userChanged()
        parameters.userChanged()
        var bind = bindFrame(points)
        bind.parameters = newParameters
        let unanswered = requests.removeAll().map { ClientAction.answered(ticket: $0, .none) }
        return unanswered + [.send(.with { $0.bind = bind })] + (phase == .open ? [collect] : [])
    }

    /// Reports that the app entered or left the foreground.
    mutating func foregroundChanged(to isForeground: Bool, now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .greeting || phase == .open, pings.foregroundChanged(to: isForeground, now: now) else {
            return []
        }
        return [.send(.with { $0.foreground.foreground = isForeground })]
    }

    /// Sends the suspended Sync IDs and the parameters.
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

    /// Collects the values for the service, if a frame can be sent.
    func hasParameters(now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .open, let userID = acceptedUserID, parameters.isFree(at: now) else { return [] }
        return [.collectParameters(userID: userID)]
    }

    /// Sends the values that `collectParameters` found.
    mutating func collected(
        parameters found: [DeviceParameter], ofUser userID: String, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .open, acceptedUserID?.isSame(as: userID) == true, !found.isEmpty, parameters.isFree(at: now)
        else { return [] }
        return [.send(parameters.send(found, ofUser: userID, bindNumber: binding.number, now: now))]
    }

    // MARK: Requests

    /// Sends a request. The reply, or its absence, arrives as an action.
    mutating func ask(
        _ request: ClientRequests.Request, ticket: UInt64, now: ContinuousClock.Instant
    ) -> [ClientAction] {
        guard phase == .open else { return [.answered(ticket: ticket, .none)] }
        requests.ask(request, ticket: ticket)
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

    /// Collects the user's operations, if a frame can be sent.
    func hasOperations(now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .open, let userID = acceptedUserID, operations.isFree(at: now) else { return [] }
        return [.collectOperations(userID: userID)]
    }

    /// Sends the operations that `collectOperations` found.
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

    /// Collects confirmations, resends and dead letters for a report, unless a report is in flight.
    func hasReports() -> [ClientAction] {
        phase == .open && reports.isFree ? [collect] : []
    }

    /// Sends the content that `collectReport` found.
    mutating func collected(_ content: OplogReport, now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .open, reports.isFree, !content.isEmpty else { return [] }
        return [.send(reports.send(content, ofUser: acceptedUserID, now: now))]
    }

    /// Handles the passage of time; to be called at `deadline` or earlier.
    mutating func ticked(now: ContinuousClock.Instant) -> [ClientAction] {
        guard phase == .greeting || phase == .open else { return [] }
        if pings.isSilent(at: now) { return end(.silent) }
        // Timeouts come first, so that their callers are informed even when the connection ends below.
        let overdue = requests.removeOverdue(at: now)
        var actions = overdue.map { ClientAction.answered(ticket: $0, .none) }
        if !overdue.isEmpty { actions += sendRequests(now: now) }
        if let ping = pings.next(at: now) { actions.append(.send(ping)) }
        if reports.removeOverdue(at: now) { actions.append(collect) }
        if operations.isOverdue(at: now) || parameters.isOverdue(at: now) { return actions + end(.silent) }
        if parameters.isDue(at: now) { actions += hasParameters(now: now) }
        return operations.isDue(at: now) ? actions + hasOperations(now: now) : actions
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

    /// Whether the app has called bind again, so that this device requests the ownership of the user's single-device
    /// data.
    private func isRequestedAnew(_ user: BoundUser?) -> Bool {
        user?.request != nil && user?.request != binding.user?.request
    }

    /// Ends the connection for this reason.
    mutating func end(_ end: ConnectionEnd) -> [ClientAction] {
        phase = .ended
        pings.stop()
        reports.removeAll()
        return requests.removeAll().map { .answered(ticket: $0, .none) } + [.end(end)]
    }
}
