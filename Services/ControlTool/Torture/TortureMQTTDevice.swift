import DeliveryHistory
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// A device of a torture run that speaks MQTT 5.0: it takes few publications at a time, subscribes late, answers late,
/// vanishes and comes back. All of its user's data is owed to it, and nothing may reach its socket that was recalled,
/// has ended, or needs a session that is over.
final class TortureMQTTDevice: Sendable {
    static let applicationProtocol = "mqtt"
    /// Publications in a burst that waits at the gateway, more than any window of a visit.
    private static let burst = 12

    private let world: TortureWorld
    private let instance: String
    private let device: String
    private let user: String
    private let tls: NIOSSLContext
    private let random: Mutex<SeededGenerator>
    private let seen = Mutex<Set<String>>([])

    init(_ world: TortureWorld, instance: String, user: Int, tls: NIOSSLContext, seed: UInt64) {
        self.world = world
        self.instance = instance
        device = "mqtt-\(user)"
        self.user = "user-\(user)"
        self.tls = tls
        random = Mutex(SeededGenerator(seed: seed))
    }

    private var name: String { TortureWorld.name(instance, device) }

    private func draw(_ range: Range<Int>) -> Int { random.withLock { Int.random(in: range, using: &$0) } }

    private func pause(_ milliseconds: Range<Int>) async {
        try? await Task.sleep(for: .milliseconds(draw(milliseconds)))
    }

    /// Comes and goes until the run is over.
    func run() async {
        world.history.observe(.bound(device: name, instance: instance, user: user))
        while world.phase != .over {
            await visit()
            // What it did not answer comes again.
            world.history.observe(.crashed(device: name))
            await pause(200..<2_000)
        }
    }

    private func visit() async {
        let session = "session-\(world.next())"
        let visit = MQTTVisit(world, instance: instance, device: device, user: user, session: session) { [self] in
            isRepeat($0, $1)
        }
        guard let channel = try? await connect(visit) else { return }
        defer { channel.close(promise: nil) }
        visit.begin(on: channel)
        visit.send(
            MQTTRequest.connect(
                client: device, user: "\(instance)/\(user)", password: session, window: UInt16(draw(1..<9))))
        guard await waited(for: .seconds(10), { visit.isAccepted || visit.isEnded }), visit.isAccepted else { return }
        world.count("visits of MQTT devices")
        await withDiscardingTaskGroup { group in
            group.addTask {
                while !Task.isCancelled, !visit.isEnded {
                    visit.ping()
                    try? await Task.sleep(for: .seconds(1))
                }
            }
            await stay(visit)
            group.cancelAll()
        }
        if draw(0..<2) == 0 { visit.send(MQTTRequest.disconnect) }
    }

    private func stay(_ visit: MQTTVisit) async {
        let mode = world.phase == .loaded ? draw(0..<4) : 0
        switch mode {
        case 1:
            // Publications wait for the answers to those before.
            visit.send(MQTTRequest.subscribe("#"))
            await pause(500..<1_500)
            visit.hold()
            await spring(visit)
            visit.release()
        case 2:
            // They wait for the subscription.
            await spring(visit)
            visit.send(MQTTRequest.subscribe("#"))
        default:
            await pause(0..<5_000)
            visit.send(MQTTRequest.subscribe("#"))
        }
        let end = world.history.elapsed + .seconds(mode == 0 || mode == 3 ? draw(10..<40) : 4)
        while world.history.elapsed < end, world.phase != .over, !visit.isEnded { await pause(100..<200) }
    }

    /// Has data wait at the gateway, and makes it such as must not be sent any more.
    private func spring(_ visit: MQTTVisit) async {
        if draw(0..<2) == 0 {
            let target = TortureWorld.target(instance, TortureWorld.checked, user)
            world.want(TortureWorld.Burst(target: target, count: Self.burst, recallAfter: nil))
            await pause(1_500..<3_000)
            guard await world.endSession(visit.session, of: user, in: instance, revoking: draw(0..<2) == 0) else {
                return
            }
            visit.endSession()
            world.count("sessions ended with data waiting for MQTT devices")
        } else {
            let target = TortureWorld.target(instance, TortureWorld.chat, user)
            world.want(
                TortureWorld.Burst(target: target, count: Self.burst, recallAfter: .milliseconds(draw(300..<1_500))))
            await pause(3_000..<5_000)
            world.count("recalls with data waiting for MQTT devices")
        }
        visit.ping()
        let number = visit.lastPing
        _ = await waited(for: .seconds(4)) { visit.hasAnswered(number) || visit.isEnded }
    }

    private func waited(for limit: Duration, _ condition: () -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while !condition() {
            guard .now < deadline else { return false }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return true
    }

    /// Whether it was sent this before; now it was.
    private func isRepeat(_ topic: String, _ id: Int64) -> Bool {
        seen.withLock { !$0.insert("\(topic) \(id)").inserted }
    }

    private func connect(_ visit: MQTTVisit) async throws -> any Channel {
        let gateways = world.stack.gateways
        let tls = tls
        return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.seconds(10))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(try NIOSSLClientHandler(context: tls, serverHostname: nil))
                    try pipeline.addHandler(ByteToMessageHandler(MQTTReplyDecoder()))
                    try pipeline.addHandler(MQTTVisit.Inbox(visit))
                }
            }
            .connect(host: "127.0.0.1", port: gateways[draw(0..<gateways.count)]).get()
    }
}
