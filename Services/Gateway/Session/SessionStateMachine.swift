import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// One device connection from its first frame to its end. It receives events and returns actions, without I/O and
/// clock.
struct SessionStateMachine {
    /// The stage of the connection.
    enum Stage {
        /// Accepted, no frame yet. Exits: connected (Connect), proving (signed Connect), closed (any other frame,
        /// deadline).
        case awaitingConnect
        /// The nonce of a signed Connect is being claimed. Exits: connected (new nonce), closed (used or unknown nonce).
        case proving
        /// The Connect is accepted. The session opens with the reply to its registration. Exits: closed.
        case connected
        /// Ended: every event is ignored. No exit.
        case closed
    }

    private(set) var stage = Stage.awaitingConnect
    /// While `proving`.
    private var unproven: UnprovenConnect?
    /// From `connected` on. It is kept after the end, because its waiting batches can still be written and its
    /// registration must be removed. Not the payload of a stage, because each event would copy the session.
    private(set) var session: DeviceSession?
    private var lastHeard: ContinuousClock.Instant
    /// Until this instant the event `ticked` has no effect; nil: unknown. Other events and `recheck` reset it, so each
    /// change of control data must send `contextChanged`.
    private var quietUntil: ContinuousClock.Instant?
    /// The longest time until the next ping.
    private var interval: Duration
    private let limits: SessionLimits
    /// Maximum of entries in one batch.
    private let batchEntries: Int

    /// - Parameter batchEntries: maximum of entries in one batch.
    init(limits: SessionLimits, batchEntries: Int = .max, now: ContinuousClock.Instant) {
        self.limits = limits
        self.batchEntries = batchEntries
        lastHeard = now
        interval = limits.heartbeat
    }

    /// Processes an event. A closed session ignores it.
    ///
    /// - Returns: the actions to perform, in order.
    mutating func handle(_ event: SessionEvent, in context: SessionContext) -> [SessionAction] {
        if stage == .closed { return [] }
        let actions = process(event, in: context)
        quietUntil = nil
        if case .ticked = event, actions.isEmpty { quietUntil = nextDeadline(in: context) }
        // Nothing follows a close.
        if case .close? = actions.last { end() }
        return actions
    }

    private mutating func process(_ event: SessionEvent, in context: SessionContext) -> [SessionAction] {
        switch event {
        case .frame(let packet):
            lastHeard = context.now
            return receive(packet, in: context)
        case .brokenFrame(let reason): return [.close(.protocolViolation, reason)]
        case .overRate(let refusal): return [.close(refusal.code, refusal.reason)]
        case .disconnected:
            end()
            return []
        case .claimed(let isFresh): return claimed(isFresh, in: context)
        case .drained: return [.close(.draining, "this gateway is shutting down")]
        case .ticked: return closeForSilence(at: context.now).map { [$0] } ?? handled(event, in: context)
        default: return handled(event, in: context)
        }
    }

    private mutating func end() {
        stage = .closed
        unproven = nil
    }

    /// Passes an event to the session of an accepted Connect.
    private mutating func handled(_ event: SessionEvent, in context: SessionContext) -> [SessionAction] {
        guard stage == .connected else { return [] }
        return session?.handle(event, in: context) ?? []
    }

    // MARK: Frames

    private mutating func receive(_ packet: Mss_Device_V1_Packet, in context: SessionContext) -> [SessionAction] {
        let stage = stage
        switch packet.body {
        case .connect(let connect) where stage == .awaitingConnect: return receive(connect, in: context)
        case _ where stage == .awaitingConnect:
            return [.close(.protocolViolation, "the first frame must be Connect")]
        case .connect: return [.close(.protocolViolation, "Connect came twice")]
        case .close: return [.close(.normal, "the device closed the connection")]
        case .ping(let ping):
            if ping.intervalSeconds > 0 {
                interval = min(.seconds(Int64(ping.intervalSeconds)), limits.longestInterval)
            }
            return [.send(.with { $0.pong.number = ping.number })]
        default:
            if stage == .proving { return unproven?.receive(packet, in: context) ?? [] }
            guard stage == .connected else { return [] }
            return session?.receive(packet, in: context) ?? []
        }
    }

    /// Processes the first frame. Nothing is registered or sent before its signature was checked.
    private mutating func receive(
        _ connect: Mss_Device_V1_Connect, in context: SessionContext
    ) -> [SessionAction] {
        guard connect.protocolVersion >= 1 else {
            return [.close(.protocolViolation, "protocol_version is missing")]
        }
        guard let instance = context.instance(InstanceID(connect.instanceID)), instance.isEnabled else {
            return [.close(.unknownInstance, "no such instance")]
        }
        switch ConnectSignatureCheck.check(connect, to: instance, in: context) {
        case .notNeeded:
            guard ConnectCheck.spend(on: connect, in: context) else { return [.sharedRateUsedUp] }
            return accept(UnprovenConnect(connect), signedBy: nil, in: context)
        case .signed(let claim):
            // Before the claim, because the claim is a write in the store.
            guard ConnectCheck.spend(on: connect, in: context) else { return [.sharedRateUsedUp] }
            unproven = UnprovenConnect(connect)
            stage = .proving
            return [.claim(claim)]
        case .clockOff:
            return [.close(.clockOff, "the timestamp is more than 300 s off: use server_time_ms and sign again")]
        case .refused: return [.signatureRefused]
        case .unavailable: return [.close(.unavailable, "the signature cannot be checked now")]
        }
    }

    /// Processes the outcome of the nonce's claim; nil: unknown.
    private mutating func claimed(_ isFresh: Bool?, in context: SessionContext) -> [SessionAction] {
        guard let unproven = unproven.take() else { return [] }
        guard let isFresh else { return [.close(.unavailable, "the signature cannot be checked now")] }
        guard isFresh else { return [.close(.signatureRefused, "the nonce was used before: sign a new Connect")] }
        return accept(unproven, signedBy: unproven.connect.signature.keyID, in: context)
    }

    private mutating func accept(
        _ unproven: UnprovenConnect, signedBy keyID: String?, in context: SessionContext
    ) -> [SessionAction] {
        let connect = unproven.connect
        switch ConnectCheck.identity(of: connect, signedBy: keyID) {
        case .refused(let close): return [close]
        case .accepted(let identity):
            var device = DeviceSession(
                identity, after: unproven.numbers, limits: limits, batchEntries: batchEntries)
            device.window.addReportedPoints(connect.syncPoints, needingUser: false)
            var actions =
                connect.hasBind ? device.apply(connect.bind, in: context) : device.register(in: context)
            for frame in unproven.frames {
                if case .close? = actions.last { break }
                lastHeard = context.now
                actions += device.receive(frame, in: context)
            }
            session = device
            stage = .connected
            return actions
        }
    }

    // MARK: Time

    /// The action that closes a connection without frames; nil: a frame came recently enough.
    private func closeForSilence(at now: ContinuousClock.Instant) -> SessionAction? {
        let silence = lastHeard.duration(to: now)
        if stage == .awaitingConnect, silence >= limits.connectDeadline {
            // The network or a stall of this process may be the cause, so the code lets the device reconnect soon.
            return .close(.idle, "no Connect within \(limits.connectDeadline)")
        }
        return silence >= longestSilence ? .close(.idle, "no frame for \(longestSilence)") : nil
    }

    private var longestSilence: Duration { interval * 5 / 2 }

    /// The earliest instant at which a tick can have an effect, if no other event comes first; nil: unknown.
    private mutating func nextDeadline(in context: SessionContext) -> ContinuousClock.Instant? {
        guard stage == .connected else { return nil }
        let silenceEnd = lastHeard + longestSilence
        return withSession { session in
            // The resends of its batches have deadlines of their own, so every tick is needed.
            if session.identity.isSimple { return context.now }
            let validation = session.eligibility.nextValidation(of: session.window.cursors.keys, in: context)
            return [session.retryAt, validation].compactMap(\.self).reduce(silenceEnd, min)
        }
    }

    /// Whether the event `ticked` can have an effect now. It costs next to nothing, so that a gateway can ask all of
    /// its sessions every second. It is mutating, because otherwise the session would be copied.
    mutating func isTickDue(at now: ContinuousClock.Instant) -> Bool {
        quietUntil.map { $0 <= now } ?? (stage != .closed)
    }
}

extension SessionStateMachine {
    // MARK: Waiting batches

    /// Checks the rules again for batches that have waited since an earlier event.
    ///
    /// - Returns: the batches that continue to wait.
    mutating func recheck(
        _ items: [OutboundBatch], in context: SessionContext
    ) -> (waiting: [OutboundBatch], actions: [SessionAction]) {
        quietUntil = nil
        return session?.recheck(items, isClosed: stage == .closed, in: context) ?? ([], [])
    }

    /// Records that batches were written to the connection.
    mutating func recordWritten(_ items: [OutboundBatch], at now: ContinuousClock.Instant) {
        for item in items { session?.window.recordWritten(item, at: now) }
    }

    /// Whether pages of the opening backlog are in flight, so that the arrived pages wait for them.
    mutating func gathersBacklog() -> Bool {
        guard stage == .connected else { return false }
        return withSession { $0.registration.isOpen && $0.window.gathersBacklog } ?? false
    }

    /// Whether waiting batches contain data with a session check. Such data is written in the turn in which the verdict
    /// was checked.
    mutating func hasChecked(_ items: [OutboundBatch], in context: SessionContext) -> Bool {
        withSession { session in
            items.contains { session.eligibility.checksSession($0.batch.bizType, in: context) }
        } ?? false
    }

    /// Whether a batch has a session check and the verdict is invalid.
    mutating func isOfInvalidSession(_ item: OutboundBatch, in context: SessionContext) -> Bool {
        withSession {
            $0.eligibility.check.verdict == .invalid
                && $0.eligibility.checksSession(item.batch.bizType, in: context)
        } ?? false
    }

    // MARK: View

    /// The identity of the device and user, also after the end; nil: the Connect was not accepted.
    var identity: SessionIdentity? {
        mutating get { withSession { $0.eligibility.identity } }
    }

    /// The number of the connection in the store; 0: not registered.
    var connectionEpoch: Int64 {
        mutating get { withSession { $0.eligibility.registration.connectionEpoch } ?? 0 }
    }

    /// The outcome of a notice's non-persistent entries, after the session has processed it.
    mutating func replyEntries(of notice: ChannelNotice, in context: SessionContext) -> NoticeReplyEntries {
        guard stage == .connected else { return NoticeReplyEntries() }
        return withSession { $0.window.replyEntries(of: notice, by: $0.eligibility, in: context) }
            ?? NoticeReplyEntries()
    }

    /// Calls a function with the session in place, which copies nothing; nil: the Connect was not accepted.
    private mutating func withSession<Result>(_ body: (inout DeviceSession) -> Result) -> Result? {
        session?.inPlace(body)
    }
}

extension DeviceSession {
    fileprivate mutating func inPlace<Result>(_ body: (inout DeviceSession) -> Result) -> Result { body(&self) }
}
