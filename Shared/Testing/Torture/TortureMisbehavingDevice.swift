import Conformance
import DeliveryHistory
import DeviceProtocol
import NIOCore
import NIOSSL
import SwiftProtobuf

/// A device of a torture run that violates every rule except the form of frames. It acknowledges data that it did not
/// receive, falls back in its acknowledgements, changes users while data arrives, and disconnects. It must receive no
/// foreign data. It need not receive anything.
final class TortureMisbehavingDevice: Sendable {
    private let world: TortureWorld
    private let instance: String
    private let device: String
    private let tls: NIOSSLContext
    private let random: SeededDraws

    init(_ world: TortureWorld, instance: String, number: Int, tls: NIOSSLContext, seed: UInt64) {
        self.world = world
        self.instance = instance
        device = "misbehaving-\(number)"
        self.tls = tls
        random = SeededDraws(seed: seed)
    }

    /// Connects again and again until the run is over.
    func run() async {
        while world.phase != .over {
            await connectOnce()
            await random.pause(200..<3_000)
        }
    }

    private func connectOnce() async {
        let checks = MisbehavingDeviceConnection(world, instance: instance, device: device)
        // A connection can fail during a network fault.
        guard let connection = try? await connect(checks) else { return }
        defer { connection.channel.close(promise: nil) }
        var (number, user, session) = (UInt32(1), "", "")
        let first = newBind(number, checks, &user, &session)
        connection.sendConnect(
            instance: instance, device: device, store: "store-\(random.draw(0..<3))", number: UInt64(world.next()),
            bind: first)
        world.count("connections of misbehaving devices")
        await withDiscardingTaskGroup { group in
            for _ in 0..<random.draw(5..<60) where world.phase != .over && !connection.isEnded {
                await random.pause(50..<800)
                let ping = checks.ping()
                connection.send(.with { $0.ping.number = ping })
                switch random.draw(0..<20) {
                case 0, 1:
                    number += 1
                    let bind = newBind(number, checks, &user, &session)
                    connection.send(.with { $0.bind = bind })
                case 2:
                    let (ended, owner) = (session, user)
                    group.addTask { await self.endSession(ended, of: owner, checks, connection) }
                // Rarely, because it needs extra pushes.
                case 3 where random.draw(0..<4) == 0: await listenLate(user, connection)
                default: connection.send(falseFrame(number))
                }
            }
            if random.draw(0..<2) == 0 { connection.channel.close(promise: nil) }
        }
    }

    private func newBind(
        _ number: UInt32, _ checks: MisbehavingDeviceConnection, _ user: inout String, _ session: inout String
    ) -> Mss_Device_V1_Bind {
        // Only users that misbehaving devices may bind: the tenant accepts the session.
        user = "user-\(random.draw(0..<(world.usersPerInstance + 1) / 2) * 2)"
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
        world.request(TortureWorld.Burst(target: target, count: 8, recallAfter: .milliseconds(random.draw(0..<500))))
        await random.pause(1_500..<3_000)
        try? await connection.setReading(true)
    }

    /// Ends a session, then sends a ping after whose pong no checked data may come. The ping follows the revocation or
    /// the end of the verdict lifetime.
    private func endSession(
        _ session: String, of user: String, _ checks: MisbehavingDeviceConnection, _ connection: FrameConnection
    ) async {
        guard await world.endSession(session, of: user, in: instance, revoking: random.draw(0..<2) == 0),
            !connection.isEnded
        else { return }
        let number = UInt64(world.next())
        checks.expectNoCheckedData(on: session, afterPong: number)
        connection.send(.with { $0.ping.number = number })
        world.count("ended sessions that misbehaving devices checked")
    }

    /// A well-formed frame with false content.
    private func falseFrame(_ bind: UInt32) -> Mss_Device_V1_Packet {
        let upto = [0, 1, Int64(random.draw(0..<1_000_000)), 1 << 52][random.draw(0..<4)]
        let kind: Mss_Device_V1_ChannelKind = [.user, .device, .globalUser, .globalDevice][random.draw(0..<4)]
        let bizTypes = TortureWorld.kinds.map(\.bizType) + ["NO-SUCH-TYPE"]
        let bizType = bizTypes[random.draw(0..<bizTypes.count)]
        return .with {
            switch random.draw(0..<3) {
            case 0:
                $0.storedAck.channels = [
                    .with {
                        $0.kind = kind
                        $0.bizType = bizType
                        $0.bindNumber = bind &- UInt32(random.draw(0..<2))
                        $0.upto = upto
                    }
                ]
            case 1:
                $0.confirmReport.reportID = UInt64(random.draw(0..<100))
                $0.confirmReport.channels = [
                    .with {
                        $0.kind = kind
                        $0.bizType = bizType
                        $0.bindNumber = bind
                        $0.oplogIds = [upto]
                    }
                ]
            default: $0.foreground.foreground = random.draw(0..<2) == 0
            }
        }
    }

    /// The responder acknowledges about every second push.
    private func connect(_ checks: MisbehavingDeviceConnection) async throws -> FrameConnection {
        let gateways = world.stack.gateways
        return try await .open(port: gateways[random.draw(0..<gateways.count)], tls: tls) { checks.received($0) }
    }
}
