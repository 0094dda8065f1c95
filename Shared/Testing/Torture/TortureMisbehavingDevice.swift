import Conformance
import DeliveryHistory
import DeviceProtocol
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf
import Synchronization

/// A device of a torture run that violates every rule except the form of frames. It acknowledges data that it did not
/// receive, falls back in its acknowledgements, changes users while data arrives, and disconnects. It must receive no
/// foreign data. It need not receive anything.
final class TortureMisbehavingDevice: Sendable {
    private let world: TortureWorld
    private let instance: String
    private let device: String
    private let tls: NIOSSLContext
    private let random: Mutex<SeededGenerator>

    init(_ world: TortureWorld, instance: String, number: Int, tls: NIOSSLContext, seed: UInt64) {
        self.world = world
        self.instance = instance
        device = "misbehaving-\(number)"
        self.tls = tls
        random = Mutex(SeededGenerator(seed: seed))
    }

    private func draw(_ range: Range<Int>) -> Int { random.withLock { Int.random(in: range, using: &$0) } }

    private func pause(_ milliseconds: Range<Int>) async {
        try? await Task.sleep(for: .milliseconds(draw(milliseconds)))
    }

    /// Connects again and again until the run is over.
    func run() async {
        while world.phase != .over {
            await connectOnce()
            await pause(200..<3_000)
        }
    }

    private func connectOnce() async {
        let checks = MisbehavingDeviceConnection(world, instance: instance, device: device)
        // A connection can fail during a network fault.
        guard let connection = try? await connect(checks) else { return }
        defer { connection.channel.close(promise: nil) }
        var (number, user, session) = (UInt32(1), "", "")
        let first = newBind(number, checks, &user, &session)
        connection.send(
            .with {
                $0.connect.protocolVersion = DeviceProtocolLimits.version
                $0.connect.instanceID = instance
                $0.connect.deviceID = device
                $0.connect.storeID = "store-\(draw(0..<3))"
                $0.connect.osName = "iOS"
                $0.connect.appVersion = "1.0"
                $0.connect.connectionNumber = UInt64(world.next())
                $0.connect.bind = first
            })
        world.count("connections of misbehaving devices")
        await withDiscardingTaskGroup { group in
            for _ in 0..<draw(5..<60) where world.phase != .over && !connection.isEnded {
                await pause(50..<800)
                let ping = checks.ping()
                connection.send(.with { $0.ping.number = ping })
                switch draw(0..<20) {
                case 0, 1:
                    number += 1
                    let bind = newBind(number, checks, &user, &session)
                    connection.send(.with { $0.bind = bind })
                case 2:
                    let (ended, owner) = (session, user)
                    group.addTask { await self.endSession(ended, of: owner, checks, connection) }
                // Rarely, because it needs extra pushes.
                case 3 where draw(0..<4) == 0: await listenLate(user, connection)
                default: connection.send(falseFrame(number))
                }
            }
            if draw(0..<2) == 0 { connection.channel.close(promise: nil) }
        }
    }

    private func newBind(
        _ number: UInt32, _ checks: MisbehavingDeviceConnection, _ user: inout String, _ session: inout String
    ) -> Mss_Device_V1_Bind {
        // Only users that misbehaving devices may bind: the tenant accepts the session.
        user = "user-\(draw(0..<(world.usersPerInstance + 1) / 2) * 2)"
        session = "session-\(world.next())"
        checks.bound(number, user: user, session: session)
        return .with {
            $0.bindNumber = number
            $0.requestedByApp = true
            $0.userID = user
            $0.sessionID = session
        }
    }

    /// Stops reading for some time, in which pushes come and are recalled. The gateway must not write the waiting
    /// batches.
    private func listenLate(_ user: String, _ connection: FrameConnection) async {
        let target = TortureWorld.target(instance, TortureWorld.chat, user)
        try? await connection.setReading(false)
        world.request(TortureWorld.Burst(target: target, count: 8, recallAfter: .milliseconds(draw(0..<500))))
        await pause(1_500..<3_000)
        try? await connection.setReading(true)
    }

    /// Ends a session, then sends a ping after whose pong no checked data may come. The ping follows the revocation or
    /// the end of the verdict lifetime.
    private func endSession(
        _ session: String, of user: String, _ checks: MisbehavingDeviceConnection, _ connection: FrameConnection
    ) async {
        guard await world.endSession(session, of: user, in: instance, revoking: draw(0..<2) == 0), !connection.isEnded
        else { return }
        let number = UInt64(world.next())
        checks.expectNoCheckedData(on: session, afterPong: number)
        connection.send(.with { $0.ping.number = number })
        world.count("ended sessions that misbehaving devices checked")
    }

    /// A well-formed frame with false content.
    private func falseFrame(_ bind: UInt32) -> Mss_Device_V1_Packet {
        let upto = [0, 1, Int64(draw(0..<1_000_000)), 1 << 52][draw(0..<4)]
        let kind: Mss_Device_V1_ChannelKind = [.user, .device, .globalUser, .globalDevice][draw(0..<4)]
        let bizTypes = TortureWorld.kinds.map(\.bizType) + ["NO-SUCH-TYPE"]
        let bizType = bizTypes[draw(0..<bizTypes.count)]
        return .with {
            switch draw(0..<3) {
            case 0:
                $0.storedAck.channels = [
                    .with {
                        $0.kind = kind
                        $0.bizType = bizType
                        $0.bindNumber = bind &- UInt32(draw(0..<2))
                        $0.upto = upto
                    }
                ]
            case 1:
                $0.confirmReport.reportID = UInt64(draw(0..<100))
                $0.confirmReport.channels = [
                    .with {
                        $0.kind = kind
                        $0.bizType = bizType
                        $0.bindNumber = bind
                        $0.oplogIds = [upto]
                    }
                ]
            default: $0.foreground.foreground = draw(0..<2) == 0
            }
        }
    }

    /// The responder acknowledges about every second push.
    private func connect(_ checks: MisbehavingDeviceConnection) async throws -> FrameConnection {
        let gateways = world.stack.gateways
        let tls = tls
        return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.seconds(10))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: "127.0.0.1", port: gateways[draw(0..<gateways.count)]) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try FrameConnection.install(
                        on: channel, tls: try NIOSSLClientHandler(context: tls, serverHostname: nil),
                        maxBytes: DeviceProtocolLimits.toDeviceBytes, responder: { checks.received($0) })
                }
            }
    }
}
