import DeliveryHistory
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// An MQTT 5.0 device of a torture run. It has a small receive maximum, subscribes late, answers late, disconnects and
/// returns. It must receive all of its user's data. It must not receive data that is recalled or expired, or checked
/// data of an ended session.
final class TortureMQTTDevice: Sendable {
    static let applicationProtocol = "mqtt"
    /// Pushes of a burst: more than the receive maximum of any connection.
    private static let burst = 12

    private let world: TortureWorld
    private let instance: String
    private let device: String
    private let user: String
    private let tls: NIOSSLContext
    private let random: SeededDraws
    private let seen = Mutex<Set<String>>([])

    init(_ world: TortureWorld, instance: String, user: Int, tls: NIOSSLContext, seed: UInt64) {
        self.world = world
        self.instance = instance
        device = "mqtt-\(user)"
        self.user = "user-\(user)"
        self.tls = tls
        random = SeededDraws(seed: seed)
    }

    private var name: String { TortureWorld.name(instance, device) }

    /// Connects again and again until the run is over.
    func run() async {
        world.history.observe(.bound(device: name, instance: instance, user: user))
        while world.phase != .over {
            await connectOnce()
            // Publications without an answer come again.
            world.history.observe(.crashed(device: name))
            await random.pause(200..<2_000)
        }
    }

    private func connectOnce() async {
        let session = "session-\(world.next())"
        let connection = TortureMQTTConnection(
            world, instance: instance, device: device, user: user, session: session,
            isRepeat: { [self] in isRepeat($0, $1) })
        guard let channel = try? await connect(connection) else { return }
        defer { channel.close(promise: nil) }
        connection.begin(on: channel)
        connection.send(
            MQTTRequest.connect(
                client: device, user: "\(instance)/\(user)", password: session, window: UInt16(random.draw(1..<9))))
        guard await waited(for: .seconds(10), { connection.isAccepted || connection.isEnded }), connection.isAccepted
        else { return }
        world.count("connections of MQTT devices")
        await withDiscardingTaskGroup { group in
            group.addTask {
                while !Task.isCancelled, !connection.isEnded {
                    connection.ping()
                    try? await Task.sleep(for: .seconds(1))
                }
            }
            await stay(connection)
            group.cancelAll()
        }
        if random.draw(0..<2) == 0 { connection.send(MQTTRequest.disconnect) }
    }

    private func stay(_ connection: TortureMQTTConnection) async {
        let mode = world.phase == .loaded ? random.draw(0..<4) : 0
        switch mode {
        case 1:
            // Publications wait for the answers to earlier ones.
            connection.send(MQTTRequest.subscribe("#"))
            await random.pause(500..<1_500)
            connection.hold()
            await invalidateWaitingData(connection)
            connection.release()
        case 2:
            // Publications wait for the subscription.
            await invalidateWaitingData(connection)
            connection.send(MQTTRequest.subscribe("#"))
        default:
            await random.pause(0..<5_000)
            connection.send(MQTTRequest.subscribe("#"))
        }
        let end = world.history.elapsed + .seconds(mode == 0 || mode == 3 ? random.draw(10..<40) : 4)
        while world.history.elapsed < end, world.phase != .over, !connection.isEnded { await random.pause(100..<200) }
    }

    /// Makes data wait at the gateway, then makes it ineligible, so that the gateway must not send it.
    private func invalidateWaitingData(_ connection: TortureMQTTConnection) async {
        if random.draw(0..<2) == 0 {
            let target = TortureWorld.target(instance, TortureWorld.checked, user)
            world.request(TortureWorld.Burst(target: target, count: Self.burst, recallAfter: nil))
            await random.pause(1_500..<3_000)
            guard await world.endSession(connection.session, of: user, in: instance, revoking: random.draw(0..<2) == 0)
            else {
                return
            }
            connection.endSession()
            world.count("sessions ended with data waiting for MQTT devices")
        } else {
            let target = TortureWorld.target(instance, TortureWorld.chat, user)
            world.request(
                TortureWorld.Burst(
                    target: target, count: Self.burst, recallAfter: .milliseconds(random.draw(300..<1_500))))
            await random.pause(3_000..<5_000)
            world.count("recalls with data waiting for MQTT devices")
        }
        connection.ping()
        let number = connection.lastPing
        _ = await waited(for: .seconds(4)) { connection.hasAnswered(number) || connection.isEnded }
    }

    private func waited(for limit: Duration, _ condition: () -> Bool) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while !condition() {
            guard .now < deadline else { return false }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return true
    }

    /// Whether the device received the oplog before. The call records the oplog.
    private func isRepeat(_ topic: String, _ id: Int64) -> Bool {
        seen.withLock { !$0.insert("\(topic) \(id)").inserted }
    }

    private func connect(_ connection: TortureMQTTConnection) async throws -> any Channel {
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
                    try pipeline.addHandler(TortureMQTTConnection.Inbox(connection))
                }
            }
            .connect(host: "127.0.0.1", port: gateways[random.draw(0..<gateways.count)]).get()
    }
}
