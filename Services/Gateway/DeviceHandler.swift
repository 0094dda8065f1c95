import BusMessages
import DeviceProtocol
import Logging
import Metrics
import NIOCore
import ServerTLS
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Drives one device connection: gives events to its state machine and performs the actions, on its event loop.
final class DeviceHandler: ChannelInboundHandler {
    typealias InboundIn = Mss_Device_V1_Packet
    typealias OutboundOut = ByteBuffer

    private let gateway: GatewayCore
    private let number: UInt64
    /// Nil: the connection takes frames as they are.
    private let transport: (any DeviceTransport)?
    private var machine: SessionStateMachine
    /// Admission knows that it is a device.
    private var isAdmitted = false
    private var context: ChannelHandlerContext?
    /// Batches that wait for the end of this turn of the event loop, to leave in as few frames as the limit allows
    /// (spec D5), or for a connection that takes no data now.
    private var batches: [GatheredBatch] = []
    private var batchBytes = 0
    /// A `CaughtUp` that follows batches which wait.
    private var waitingCaughtUp: Mss_Device_V1_Packet?
    private var isFlushScheduled = false
    /// Something has happened since batches began to wait.
    private var hasWaited = false
    /// The frames of one event or turn: they leave in one write.
    private var outbound: ByteBuffer?
    /// The batches in these frames.
    private var outboundBatches: [GatheredBatch] = []
    /// The batches of each write that the socket has not taken completely, since the device reads slowly.
    private var unflushed: [[GatheredBatch]] = []
    /// Durable reports that the device has not been told of.
    private var recordedReports: [UInt64] = []
    /// Since when batches wait.
    private var waitingSince: ContinuousClock.Instant?
    /// How long they wait for the pages of other channels at the most, looked at with the next event.
    private static let gathering = Duration.milliseconds(300)
    /// How long a Close frame has to leave.
    private static let closeLimit = TimeAmount.seconds(1)

    /// - Parameters:
    ///   - transport: translates the frames for the client; nil: the connection takes them as they are.
    ///   - acceptedAt: from when on the first frame is waited for.
    init(
        gateway: GatewayCore, number: UInt64, transport: (any DeviceTransport)? = nil,
        acceptedAt: ContinuousClock.Instant
    ) {
        self.gateway = gateway
        self.number = number
        self.transport = transport
        machine = SessionStateMachine(
            limits: gateway.limits, batchEntries: transport == nil ? .max : 1, now: acceptedAt)
    }

    /// Of the app, once its Connect was taken.
    var instanceID: InstanceID? { machine.identity?.instanceID }

    // MARK: Events

    func handlerAdded(context: ChannelHandlerContext) {
        // It may have ended while its transport was being found out; nothing would take the session off again.
        guard context.channel.isActive else { return }
        self.context = context
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        gateway.registry.add(SessionHandle(number: number, eventLoop: context.eventLoop, handler: bound))
    }

    func channelInactive(context: ChannelHandlerContext) {
        gateway.registry.remove(number)
        if let identity = machine.identity, machine.connectionEpoch > 0 {
            gateway.close(identity, connectionEpoch: machine.connectionEpoch)
        }
        _ = machine.handle(.disconnected, in: gateway.surroundings())
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        handle(.frame(unwrapInboundIn(data)))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let refusal = event as? RateRefusal { handle(.overRate(refusal)) }
        if event is TransportRoom { handle(.roomGrew) }
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

    /// Gives the machine an event and performs what it answers; on the event loop only.
    func handle(_ event: SessionEvent) {
        _ = take(event, in: gateway.surroundings())
        if !batches.isEmpty { scheduleFlush() }
        writeOut()
    }

    /// One of the events of a turn: `endTurn` follows in the same turn.
    ///
    /// - Returns: what the machine answered.
    private func take(_ event: SessionEvent, in world: SessionSurroundings) -> [SessionAction] {
        reconsider(in: world)
        hasWaited = !batches.isEmpty
        var world = world
        world.room = room
        let actions = machine.handle(event, in: world.behind(batches.count))
        perform(actions)
        noteConnect()
        if !batches.isEmpty, withMachine({ $0.hasChecked(batches, in: world) }) { writeBatches() }
        if !unflushed.isEmpty || !outboundBatches.isEmpty { endUnlessAllowed(event, in: world) }
        return actions
    }

    /// Ends the connection when the socket has not taken data that must not reach the device any more: such data can
    /// only be thrown away with the connection. The device gets the rest on its next connection.
    private func endUnlessAllowed(_ event: SessionEvent, in world: SessionSurroundings) {
        var recalled: (channelID: Int64, ids: Set<OplogID>) = (0, [])
        if case .noticed(let notice) = event {
            recalled = (notice.channelID, Set(notice.entries.compactMap(\.recalls)))
        }
        func isForbidden(_ item: GatheredBatch) -> Bool {
            item.channelID == recalled.channelID && !recalled.ids.isDisjoint(with: item.oplogs)
                || withMachine { $0.isOfInvalidSession(item.batch, in: world) }
        }
        if outboundBatches.contains(where: isForbidden) { writeOut() }
        guard unflushed.joined().contains(where: isForbidden), let context else { return }
        gateway.logger.info(
            "device disconnected: the data that waits in its socket was recalled, or its session was ended",
            metadata: ["device": "\(machine.identity?.deviceID.text ?? "")"])
        context.pipeline.syncOperations.closePastTLS()
    }

    /// A notice of a turn.
    ///
    /// - Returns: what this session takes of the notice's entries that are stored nowhere.
    func take(_ notice: ChannelNotice, in world: SessionSurroundings) -> TakenEntries {
        _ = take(.noticed(notice), in: world)
        return machine.taken(of: notice, in: world)
    }

    /// Writes what the turn's events gave; the pages of a backlog wait for one another.
    func endTurn() {
        if !batches.isEmpty, !waitsForPages { writeBatches() }
        writeOut()
    }

    /// Asks the machine, in place: read as a property of an object it would be copied, with all that it holds.
    private func withMachine<Result>(_ look: (inout SessionStateMachine) -> Result) -> Result { look(&machine) }

    /// The registration was answered; of a connection that has ended meanwhile nothing stays on record.
    func registered(_ identity: SessionIdentity, _ reply: Mss_Bus_V1_SessionReply) {
        guard context != nil, machine.phase != .closed else {
            if reply.connectionEpoch > 0 { gateway.close(identity, connectionEpoch: reply.connectionEpoch) }
            return
        }
        handle(.registered(reply, bindNumber: identity.bindNumber))
    }

    /// A report of the device is durable. The device hears of it in one write with what it gets next, or by
    /// `tellRecorded`.
    func recorded(_ report: UInt64) { recordedReports.append(report) }

    /// Tells the device what nothing has taken along.
    func tellRecorded() {
        guard !recordedReports.isEmpty else { return }
        writeRecorded()
        writeOut()
    }

    private func writeRecorded() {
        for id in recordedReports { write(.with { $0.confirmRecorded.reportID = id }) }
        recordedReports = []
    }

    /// Once its Connect was taken, whatever that had to wait for, it is a stranger no longer (reliability SEC2).
    private func noteConnect() {
        guard !isAdmitted, machine.phase == .opening || machine.phase == .open else { return }
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
            append(GatheredBatch(batch: batch, oplogs: oplogs, channelID: channelID))
        case .send(let packet):
            writeBatches()
            if case .caughtUp? = packet.body, !batches.isEmpty {
                waitingCaughtUp = packet
            } else {
                write(packet)
            }
        case .answer(let packet):
            write(packet)
        case .claim(let claim):
            gateway.claim(claim, for: handle(on: context))
        case .listen(let targets):
            gateway.registry.listen(number, to: targets)
        case .open(let identity, let connectionEpoch, let opensBind, let claim, let verdictFor):
            gateway.open(
                identity, connectionEpoch: connectionEpoch, opensBind: opensBind, claim: claim,
                verdictFor: verdictFor, for: handle(on: context))
        case .update(let identity, let connectionEpoch, let verdictFor):
            gateway.update(
                identity, connectionEpoch: connectionEpoch, verdictFor: verdictFor, for: handle(on: context))
        case .fetch(let request):
            gateway.fetch(request, for: handle(on: context))
        case .readHistory(let read):
            gateway.readHistory(read, for: handle(on: context))
        case .readSummary(let read):
            gateway.readSummary(read, for: handle(on: context))
        case .validate(let instanceID, let userID, let sessionID, let bindNumber):
            gateway.validate(
                instanceID: instanceID, userID: userID, sessionID: sessionID, bindNumber: bindNumber,
                for: handle(on: context))
        case .submit(let submission):
            gateway.submit(submission, for: handle(on: context))
        case .keepParameters(let parameters, let userID, let number):
            gateway.keep(parameters, of: userID, number: number, for: handle(on: context), instanceID: instanceID)
        case .record(let channelID, let receiver, let acknowledged, let upto):
            gateway.reporter.record(channelID: channelID, receiver, acknowledged: acknowledged, upto: upto)
        case .confirm(let report):
            gateway.confirm(report, for: handle(on: context))
        case .recordResend(let channelID, let receiver, let oplogID, let repeats):
            gateway.recordResend(
                channelID: channelID, receiver, oplogID: oplogID, repeats: repeats, for: handle(on: context))
        case .skipped, .discarded, .gaveUp:
            if let identity = machine.identity {
                gateway.reporter.passedOver(action, deviceID: identity.deviceID, userID: identity.userID)
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

    private func append(_ batch: GatheredBatch) {
        let bytes = batch.bytes
        if !batches.isEmpty, batchBytes + bytes > DeviceProtocolLimits.pushFrameBytes { writeBatches() }
        batches.append(batch)
        batchBytes += bytes
        waitingSince = waitingSince ?? gateway.clock.now()
    }

    private func scheduleFlush() {
        guard !isFlushScheduled, let context else { return }
        isFlushScheduled = true
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute { bound.value.flush() }
    }

    /// At the end of a turn; the pages of a backlog wait for one another.
    private func flush() {
        isFlushScheduled = false
        if batches.isEmpty { return }
        hasWaited = true
        if !waitsForPages { writeBatches() }
        writeOut()
    }

    private var waitsForPages: Bool {
        guard let waitingSince, withMachine({ $0.gathersBacklog }) else { return false }
        return waitingSince.duration(to: gateway.clock.now()) < Self.gathering
    }

    /// What waits was handed out by the rules of an earlier moment.
    private func reconsider(in world: SessionSurroundings) {
        hasWaited = false
        if batches.isEmpty { return }
        var world = world
        world.room = room
        let (waiting, actions) = machine.reconsider(batches, in: world)
        keepWaiting(waiting)
        perform(actions)
    }

    private func keepWaiting(_ waiting: [GatheredBatch]) {
        batches = waiting
        batchBytes = waiting.reduce(0) { $0 + $1.bytes }
        if waiting.isEmpty { waitingSince = nil }
    }

    /// Entries that the connection takes now. Above its limit for bytes that wait to be sent it takes none: what waits
    /// here is looked at once more, what waits there is not.
    private var room: Int {
        guard let context, context.channel.isWritable else { return 0 }
        guard let transport else { return .max }
        #if KNOWN_BAD
            if KnownBad.packetIDsNotAwaited.isOn { return .max }
        #endif
        return transport.room
    }

    /// Writes the batches that the connection takes now. The others go on waiting.
    private func writeBatches() {
        if batches.isEmpty || room == 0 { return }
        if hasWaited { reconsider(in: gateway.surroundings()) }
        while let identity = machine.identity, context != nil {
            let ready = takeFrame()
            if ready.isEmpty { break }
            write(.with { $0.push.batches = ready.map(\.batch) })
            outboundBatches += ready
            machine.written(ready, at: gateway.clock.now())
            gateway.reporter.handedOut(ready, to: identity)
            // What the transport takes after that is known once it has these.
            if transport != nil { writeOut() }
        }
    }

    /// Takes out the batches of the next push frame, in their order.
    private func takeFrame() -> [GatheredBatch] {
        let (room, wanted) = (room, wantedTypes())
        var (ready, rest, entries, bytes) = ([GatheredBatch](), [GatheredBatch](), 0, 0)
        for item in batches where withMachine({ $0.isOfThisBind(item.batch) }) {
            guard wanted?.contains(item.batch.bizType) ?? true else {
                rest.append(item)
                continue
            }
            // Once one does not fit, none behind it does: the order within a channel stays.
            (entries, bytes) = (entries + item.batch.entries.count, bytes + item.bytes)
            let fits = entries <= room && (ready.isEmpty || bytes <= DeviceProtocolLimits.pushFrameBytes)
            if fits { ready.append(item) } else { rest.append(item) }
        }
        keepWaiting(rest)
        return ready
    }

    /// The business types among the waiting batches that the client takes; nil: all. The others are suspended, so their
    /// data is taken back.
    private func wantedTypes() -> Set<String>? {
        guard let transport else { return nil }
        let types = Set(batches.map(\.batch.bizType))
        let unwanted = types.filter { !transport.wants($0) }
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
        if batches.isEmpty, let packet = waitingCaughtUp {
            waitingCaughtUp = nil
            if packet.caughtUp.bindNumber == machine.identity?.bindNumber { write(packet) }
        }
        if outbound != nil { writeRecorded() }
        guard let context, let buffer = outbound.take() else { return }
        guard !outboundBatches.isEmpty else { return context.writeAndFlush(wrapOutboundOut(buffer), promise: nil) }
        unflushed.append(outboundBatches)
        outboundBatches = []
        context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in
            self.unflushed.removeFirst()
        }
    }

    private func close(_ code: CloseCode, _ reason: String, _ context: ChannelHandlerContext) {
        writeBatches()
        keepWaiting([])
        waitingCaughtUp = nil
        writeRecorded()
        gateway.logger.debug("device closed", metadata: ["code": "\(code.rawValue)", "reason": "\(reason)"])
        write(
            .with {
                $0.close.code = code.rawValue
                $0.close.reason = reason
                if code == .clockOff { $0.close.serverTimeMs = gateway.clock.wallTime().milliseconds }
                if CloseCode.Group(code: code.rawValue) == .reconnectLater {
                    $0.close.retryAfterMs = gateway.retryAfterMilliseconds(of: code)
                }
            })
        guard let buffer = outbound.take() else { return }
        unflushed.append(outboundBatches)
        outboundBatches = []
        context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in
            self.unflushed.removeFirst()
            context.close(promise: nil)
        }
        // Without a handshake, and when the device reads nothing, the frame never leaves.
        let channel = context.channel
        context.eventLoop.scheduleTask(in: Self.closeLimit) { channel.close(promise: nil) }
    }
}
