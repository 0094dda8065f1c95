import BusMessages
import DeviceProtocol
import Logging
import Metrics
import NIOCore
import ServerTLS
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Drives one device connection on its event loop: passes events to the state machine and performs its actions.
final class DeviceHandler: ChannelInboundHandler {
    typealias InboundIn = Mss_Device_V1_Packet
    typealias OutboundOut = ByteBuffer

    private let gateway: GatewayRuntime
    private let number: UInt64
    /// Translates frames for a client with its own protocol; nil: the connection carries frames.
    private let transport: (any DeviceTransport)?
    private var machine: SessionStateMachine
    /// `AdmissionController` was informed about the accepted `Connect`.
    private var isAdmitted = false
    private var context: ChannelHandlerContext?
    /// The batches that are handed out and not accepted by the socket.
    private var batches = OutboundBatches()
    private var isFlushScheduled = false
    /// The frames of one event or turn, which one write sends.
    private var outbound: ByteBuffer?
    /// Durable reports whose answer was not sent yet.
    private var recordedReports: [UInt64] = []
    /// Time for a Close frame to leave before the connection is closed.
    private static let closeLimit = TimeAmount.seconds(1)

    /// - Parameters:
    ///   - transport: translates frames for a client with its own protocol; nil: the connection carries frames.
    ///   - acceptedAt: when the connection was accepted; the deadline of the first frame counts from here.
    init(
        gateway: GatewayRuntime, number: UInt64, transport: (any DeviceTransport)? = nil,
        acceptedAt: ContinuousClock.Instant
    ) {
        self.gateway = gateway
        self.number = number
        self.transport = transport
        machine = SessionStateMachine(
            limits: gateway.limits, batchEntries: transport == nil ? .max : 1, now: acceptedAt)
    }

    /// The instance of the device; nil before its `Connect` was accepted.
    var instanceID: InstanceID? { machine.identity?.instanceID }

    // MARK: Events

    func handlerAdded(context: ChannelHandlerContext) {
        // The connection can have ended while its transport was detected. Nothing would remove the session then.
        guard context.channel.isActive else { return }
        self.context = context
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        gateway.registry.add(SessionHandle(number: number, eventLoop: context.eventLoop, handler: bound))
    }

    func channelInactive(context: ChannelHandlerContext) {
        gateway.registry.remove(number)
        if let identity = machine.identity, machine.connectionEpoch > 0 {
            gateway.commands.close(identity, connectionEpoch: machine.connectionEpoch)
        }
        _ = machine.handle(.disconnected, in: gateway.contexts.make())
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        handle(.frame(unwrapInboundIn(data)))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let refusal = event as? RateRefusal { handle(.overRate(refusal)) }
        if event is TransportCapacityEvent { handle(.roomGrew) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { handle(.roomGrew) }
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? FrameError {
            handle(.brokenFrame(reason: "\(error)"))
        } else {
            context.close(promise: nil)
        }
    }

    /// Passes an event to the machine, performs its actions and writes. Call it on the event loop.
    func handle(_ event: SessionEvent) {
        _ = process(event, in: gateway.contexts.make())
        if !batches.isEmpty { scheduleFlush() }
        writeOut()
    }

    /// Lets the machine look at its deadlines. Call it each second on the event loop.
    func tick() {
        if batches.areOnTheirWay || machine.isTickDue(at: gateway.clock.now()) { handle(.ticked) }
    }

    /// Processes one event of a turn. The caller calls `endTurn` in the same turn.
    ///
    /// - Returns: the machine's actions.
    private func process(_ event: SessionEvent, in sessionContext: SessionContext) -> [SessionAction] {
        recheck(in: sessionContext)
        batches.age()
        var sessionContext = sessionContext
        sessionContext.room = room
        let actions = machine.handle(event, in: sessionContext.behind(batches.waiting.count))
        perform(actions)
        reportConnected()
        if !batches.isEmpty, machine.hasChecked(batches.waiting, in: sessionContext) { writeBatches() }
        if batches.hasUnflushed { endUnlessAllowed(event, in: sessionContext) }
        return actions
    }

    /// Ends the connection when the socket still holds data that must not reach the device any more. Only closing
    /// discards such data. The device receives the rest on its next connection.
    private func endUnlessAllowed(_ event: SessionEvent, in sessionContext: SessionContext) {
        var recalled: (channelID: Int64, ids: Set<OplogID>) = (0, [])
        if case .noticed(let notice) = event {
            recalled = (notice.channelID, Set(notice.entries.compactMap(\.recalls)))
        }
        func isForbidden(_ item: OutboundBatch) -> Bool {
            item.channelID == recalled.channelID && !recalled.ids.isDisjoint(with: item.oplogs)
                || machine.isOfInvalidSession(item, in: sessionContext)
        }
        if batches.hasEncoded(where: isForbidden) { writeOut() }
        guard batches.holdsInSocket(where: isForbidden), let context else { return }
        gateway.logger.info(
            "closed a device connection: its socket held data that was recalled or whose session is invalid",
            metadata: ["device": "\(machine.identity?.deviceID.text ?? "")"])
        context.pipeline.syncOperations.closePastTLS()
    }

    /// Processes a notice of a turn.
    ///
    /// - Returns: the non-persistent entries of the notice that this session holds or missed.
    func process(_ notice: ChannelNotice, in sessionContext: SessionContext) -> NoticeReplyEntries {
        _ = process(.noticed(notice), in: sessionContext)
        return machine.replyEntries(of: notice, in: sessionContext)
    }

    /// Writes the output of the turn. Pages of a backlog wait for one another.
    func endTurn() {
        if !batches.isEmpty, !waitsForPages { writeBatches() }
        writeOut()
    }

    /// Processes the reply to a registration. If the connection ended meanwhile, removes the session from the store.
    func registered(_ identity: SessionIdentity, _ reply: Mss_Bus_V1_SessionReply) {
        guard context != nil, machine.stage != .closed else {
            if reply.connectionEpoch > 0 { gateway.commands.close(identity, connectionEpoch: reply.connectionEpoch) }
            return
        }
        handle(.registered(reply, bindNumber: identity.bindNumber))
    }

    /// Records that a report is durable. Its answer is sent with the next write, or by `flushRecorded`.
    func recorded(_ report: UInt64) { recordedReports.append(report) }

    /// Sends the answers that no other write has carried.
    func flushRecorded() {
        guard !recordedReports.isEmpty else { return }
        writeRecorded()
        writeOut()
    }

    private func writeRecorded() {
        for id in recordedReports { write(.with { $0.confirmRecorded.reportID = id }) }
        recordedReports = []
    }

    /// Reports the accepted `Connect` to admission, which then no longer counts the connection as unknown (SEC2).
    private func reportConnected() {
        guard !isAdmitted, machine.stage == .connected else { return }
        isAdmitted = true
        gateway.admission.connected(number)
    }

    // MARK: Actions

    private func perform(_ actions: [SessionAction]) {
        for action in actions { perform(action) }
    }

    private func perform(_ action: SessionAction) {
        guard let context else { return }
        switch action {
        case .push(let batch, let oplogs, let channelID):
            append(OutboundBatch(batch: batch, oplogs: oplogs, channelID: channelID))
        case .send(let packet):
            writeBatches()
            if !batches.holdCaughtUp(packet) { write(packet) }
        case .answer(let packet):
            write(packet)
        case .claim(let claim):
            gateway.commands.claim(claim, for: handle(on: context))
        case .listen(let targets):
            gateway.registry.listen(number, to: targets)
        case .open(let identity, let connectionEpoch, let opensBind, let claim, let verdictFor):
            gateway.commands.open(
                identity, connectionEpoch: connectionEpoch, opensBind: opensBind, claim: claim,
                verdictFor: verdictFor, for: handle(on: context))
        case .update(let identity, let connectionEpoch, let verdictFor):
            gateway.commands.update(
                identity, connectionEpoch: connectionEpoch, verdictFor: verdictFor, for: handle(on: context))
        case .fetch(let request):
            gateway.commands.fetch(request, for: handle(on: context))
        case .readHistory(let read):
            gateway.commands.readHistory(read, for: handle(on: context))
        case .readSummary(let read):
            gateway.commands.readSummary(read, for: handle(on: context))
        case .validate(let instanceID, let userID, let sessionID, let bindNumber):
            gateway.commands.validate(
                instanceID: instanceID, userID: userID, sessionID: sessionID, bindNumber: bindNumber,
                for: handle(on: context))
        case .submit(let submission):
            gateway.commands.submit(submission, for: handle(on: context))
        case .keepParameters(let parameters, let userID, let number):
            gateway.commands.keepParameters(
                parameters, of: userID, number: number, for: handle(on: context), instanceID: instanceID)
        case .record(let channelID, let receiver, let acknowledged, let upto):
            gateway.reporter.record(channelID: channelID, receiver, acknowledged: acknowledged, upto: upto)
        case .confirm(let report):
            gateway.reporter.confirmed(report, of: handle(on: context))
        case .recordResend(let channelID, let receiver, let oplogID, let repeats):
            gateway.commands.recordResend(
                channelID: channelID, receiver, oplogID: oplogID, repeats: repeats, for: handle(on: context))
        case .skipped, .discarded, .gaveUp:
            if let identity = machine.identity {
                gateway.reporter.recordUndelivered(action, deviceID: identity.deviceID, userID: identity.userID)
            }
        case .finishReread(let id):
            gateway.reporter.finishedReread(id)
        case .close(let code, let reason):
            close(code, reason, context)
        }
    }

    private func handle(on context: ChannelHandlerContext) -> SessionHandle {
        SessionHandle(
            number: number, eventLoop: context.eventLoop,
            handler: NIOLoopBound(self, eventLoop: context.eventLoop))
    }

    private func append(_ batch: OutboundBatch) {
        if batches.isFull(for: batch) { writeBatches() }
        batches.append(batch, at: gateway.clock.now())
    }

    private func scheduleFlush() {
        guard !isFlushScheduled, let context else { return }
        isFlushScheduled = true
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute { bound.value.flush() }
    }

    /// Writes at the end of a turn. Pages of a backlog wait for one another.
    private func flush() {
        isFlushScheduled = false
        if batches.isEmpty { return }
        batches.age()
        if !waitsForPages { writeBatches() }
        writeOut()
    }

    private var waitsForPages: Bool { batches.mayGather(at: gateway.clock.now()) && machine.gathersBacklog() }

    /// Checks the rules again for waiting batches, which were handed out at an earlier moment.
    private func recheck(in sessionContext: SessionContext) {
        guard !batches.isEmpty else { return }
        var sessionContext = sessionContext
        sessionContext.room = room
        let (allowed, actions) = machine.recheck(batches.waiting, in: sessionContext)
        batches.recheck(allowed)
        perform(actions)
    }

    /// The free capacity of the connection, in entries. It is 0 while too many bytes wait in the channel: the rules are
    /// checked again for batches that wait here, but not for bytes there.
    private var room: Int {
        guard let context, context.channel.isWritable else { return 0 }
        guard let transport else { return .max }
        return transport.room
    }

    /// Writes the batches that fit the free capacity. The others continue to wait.
    private func writeBatches() {
        if batches.isEmpty || room == 0 { return }
        if batches.needRecheck(at: gateway.clock.now()) { recheck(in: gateway.contexts.make()) }
        while let identity = machine.identity, context != nil {
            let ready = batches.dequeueFrame(
                room: room, bind: identity.bindNumber, accepted: acceptedTypes())
            if ready.isEmpty { break }
            write(.with { $0.push.batches = ready.map(\.batch) })
            machine.recordWritten(ready, at: gateway.clock.now())
            gateway.reporter.handedOut(ready, to: identity)
            // The transport's free capacity is known only after it has processed these batches.
            if transport != nil { writeOut() }
        }
    }

    /// The Sync IDs of waiting batches that the client accepts; nil: all. The others are suspended, and their batches
    /// are withdrawn.
    private func acceptedTypes() -> Set<String>? {
        guard let transport else { return nil }
        let types = Set(batches.waiting.map(\.batch.bizType))
        let unwanted = types.filter { !transport.accepts($0) }
        if !unwanted.isEmpty { transport.suspend(unwanted) }
        return types.subtracting(unwanted)
    }

    private func write(_ packet: Mss_Device_V1_Packet) {
        guard let context else { return }
        var buffer = outbound.take() ?? context.channel.allocator.buffer(capacity: 0)
        PacketEncoder.encode(packet, into: &buffer)
        outbound = buffer
    }

    private func writeOut() {
        if let packet = batches.dequeueCaughtUp(bind: machine.identity?.bindNumber) { write(packet) }
        if outbound != nil { writeRecorded() }
        guard let context, let buffer = outbound.take() else { return }
        guard batches.beginFlush() else { return context.writeAndFlush(wrapOutboundOut(buffer), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in
            self.batches.recordFlush()
        }
    }

    private func close(_ code: CloseCode, _ reason: String, _ context: ChannelHandlerContext) {
        writeBatches()
        batches.removeWaiting()
        writeRecorded()
        gateway.logger.debug("device closed", metadata: ["code": "\(code.rawValue)", "reason": "\(reason)"])
        write(
            .with {
                $0.close.code = code.rawValue
                $0.close.reason = reason
                if code == .clockOff { $0.close.serverTimeMs = gateway.clock.wallTime().milliseconds }
                if CloseCode.Group(code: code.rawValue) == .reconnectLater {
                    $0.close.retryAfterMs = code.retryAfterMilliseconds(at: gateway.contexts.random())
                }
            })
        guard let buffer = outbound.take() else { return }
        let hasBatches = batches.beginFlush()
        context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in
            if hasBatches { self.batches.recordFlush() }
            context.close(promise: nil)
        }
        // Without a handshake, or when the device does not read, the frame never leaves.
        let channel = context.channel
        context.eventLoop.scheduleTask(in: Self.closeLimit) { channel.close(promise: nil) }
    }
}
