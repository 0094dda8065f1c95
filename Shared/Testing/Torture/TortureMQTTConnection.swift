import DeliveryHistory
import NIOCore
import NIOPosix
import SyncModel
import Synchronization

/// One connection of an MQTT device in a torture run. It answers publications late, and checks each publication.
final class TortureMQTTConnection: Sendable {
    private struct State {
        var channel: (any Channel)?
        var isAccepted = false
        var isEnded = false
        /// Publications get no answer at present.
        var isHolding = false
        var unanswered: [UInt16] = []
        var barrier = SocketBarrier()
        var pings: UInt64 = 0
        var answeredPings: UInt64 = 0
        /// Time since which no checked data may be written, since the start of the run.
        var sessionEndedAt: Duration?
        /// Publications that came on this connection.
        var seen: Set<String> = []
        var random: SeededGenerator
    }

    /// Reads the connection's packets on its event loop.
    final class Inbox: ChannelInboundHandler {
        typealias InboundIn = MQTTReply
        private let connection: TortureMQTTConnection

        init(_ connection: TortureMQTTConnection) { self.connection = connection }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { connection.handle(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { connection.end() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            if error is MQTTUnreadable { connection.unreadable() }
            context.close(promise: nil)
        }
    }

    let session: String
    private let world: TortureWorld
    private let instance: String
    private let device: String
    private let user: String
    private let isRepeat: @Sendable (_ topic: String, _ id: Int64) -> Bool
    private let state: Mutex<State>

    /// - Parameter isRepeat: whether the device received the oplog before, on any connection. The call records the
    ///   oplog.
    init(
        _ world: TortureWorld, instance: String, device: String, user: String, session: String,
        isRepeat: @escaping @Sendable (_ topic: String, _ id: Int64) -> Bool
    ) {
        self.world = world
        self.instance = instance
        self.device = device
        self.user = user
        self.session = session
        self.isRepeat = isRepeat
        state = Mutex(State(random: SeededGenerator(seed: UInt64(world.next()))))
    }

    private var name: String { TortureWorld.name(instance, device) }

    var isAccepted: Bool { state.withLock { $0.isAccepted } }
    var isEnded: Bool { state.withLock { $0.isEnded } }
    var lastPing: UInt64 { state.withLock { $0.pings } }

    func hasAnswered(_ ping: UInt64) -> Bool { state.withLock { $0.answeredPings >= ping } }

    func begin(on channel: any Channel) { state.withLock { $0.channel = channel } }

    func send(_ bytes: ByteBuffer) { state.withLock { $0.channel }?.writeAndFlush(bytes, promise: nil) }

    /// Sends a ping. Data after its answer was written after this call.
    func ping() {
        let now = world.history.elapsed
        state.withLock { state in
            state.pings += 1
            state.barrier.pinged(state.pings, at: now)
            // Inside the lock, so that the pings are written in the order of their numbers.
            state.channel?.writeAndFlush(MQTTRequest.pingreq, promise: nil)
        }
    }

    /// Holds the answers to publications back.
    func hold() { state.withLock { $0.isHolding = true } }

    /// Answers waiting publications, and later ones again.
    func release() {
        let waiting = state.withLock { state in
            defer { (state.isHolding, state.unanswered) = (false, []) }
            return state.unanswered
        }
        for packetID in waiting { send(MQTTRequest.puback(packetID)) }
    }

    /// Records that no checked data may be written from now on.
    func endSession() {
        let now = world.history.elapsed
        state.withLock { $0.sessionEndedAt = now }
    }

    private func end() { state.withLock { $0.isEnded = true } }

    private func unreadable() {
        world.history.ask { $0.add(.attempted, world.history.elapsed, "\(name) got bytes that are not MQTT") }
    }

    // MARK: Received packets

    private func handle(_ reply: MQTTReply) {
        switch reply {
        case .connack(let reason): state.withLock { $0.isAccepted = reason == 0 }
        case .pingresp:
            state.withLock { state in
                state.answeredPings += 1
                state.barrier.ponged(state.answeredPings)
            }
        case .publish(let data):
            judge(data)
            answer(data)
        case .disconnect, .suback, .other: break
        }
    }

    private func answer(_ data: MQTTData) {
        guard let packetID = data.packetID else { return }
        let delay: Int? = state.withLock { state in
            guard !state.isHolding else {
                state.unanswered.append(packetID)
                return nil
            }
            return Int.random(in: 0..<10, using: &state.random) == 0
                ? Int.random(in: 500..<2_000, using: &state.random) : 0
        }
        guard let delay else { return }
        guard delay > 0, let loop = state.withLock({ $0.channel })?.eventLoop else {
            return send(MQTTRequest.puback(packetID))
        }
        loop.scheduleTask(in: .milliseconds(Int64(delay))) { [self] in send(MQTTRequest.puback(packetID)) }
    }

    private func judge(_ data: MQTTData) {
        let parts = data.topic.split(separator: "/", maxSplits: 1)
        let isTombstone = parts.count == 2 && parts[1] == "recall"
        let bizType = parts.first.map(String.init) ?? ""
        let id = data.properties["oplogId"].flatMap { Int64($0) } ?? 0
        if bizType == TortureWorld.orders { return judge(state: data.payload) }
        guard let kind = TortureWorld.kinds.first(where: { $0.bizType == bizType }) else {
            return add(.addressed, "\(name) got \(data.topic), which has no configuration")
        }
        let target = TortureWorld.target(instance, kind, kind.kind.needsUser ? user : device)
        world.count("publications to MQTT devices")
        if isTombstone {
            return world.history.observe(
                .tombstone(device: name, from: target, id: id, recalls: Int64(data.payload) ?? 0))
        }
        let push = data.properties["thirdMsgId"] ?? ""
        let (barrier, endedAt) = state.withLock { ($0.barrier, $0.sessionEndedAt) }
        switch barrier.breach(by: world.ledger.end(of: push)) {
        case .recalled?: add(.recalled, "\(name) got \(push) after the success response to its recall")
        case .expired?: add(.attempted, "\(name) got \(push) after its validity ended")
        case nil: break
        }
        if kind.bizType == TortureWorld.checked.bizType, let endedAt, endedAt <= barrier.passed {
            world.history.observe(.stale(device: name, bizType: bizType, session: session))
        }
        world.history.observe(
            .given(
                HistoryHandOut(
                    device: name, from: target, id: id, push: push, payload: data.payload,
                    attempt: attempt(data, id))))
    }

    /// A repeat on a new connection can lack the attempt number. A repeat on the same connection must have it.
    private func attempt(_ data: MQTTData, _ id: Int64) -> Int {
        let said = data.properties["attempt"].flatMap { Int($0) } ?? 1
        let isRepeatHere = state.withLock { !$0.seen.insert("\(data.topic) \(id)").inserted }
        let isRepeat = isRepeat(data.topic, id)
        return isRepeat && !isRepeatHere ? max(2, said) : said
    }

    private func judge(state payload: String) {
        guard TortureState.operation(in: payload, of: user, instance) == nil else { return }
        add(.addressed, "\(name) got the state \(payload.prefix(100)) as \(user)'s")
    }

    private func add(_ promise: HistoryFault.Promise, _ text: String) {
        world.history.ask { $0.add(promise, world.history.elapsed, text) }
    }
}
