import Conformance
import DeliveryHistory
import DeviceProtocol
import NIOCore
import NIOSSL
import SwiftProtobuf

/// A device that binds users with invalid sessions. It reports the highest positions, acknowledges, confirms and stores
/// parameters for these users. That must not affect the users (D16).
final class TortureInvalidSessionDevice: Sendable {
    /// Above every id of a channel.
    private static let hugeID = Int64(1) << 53 - 1
    /// The tenant refuses sessions with this prefix.
    private static let madeUp = "bad-"
    /// First id of a channel: the lower bound of the first database epoch.
    private static let firstID = Int64(1) << 40
    private static let claimed = [TortureWorld.chat, TortureWorld.checked, TortureWorld.checkedSolo].map(\.bizType)

    private let world: TortureWorld
    private let instance: String
    private let device: String
    private let tls: NIOSSLContext
    private let random: SeededDraws

    init(_ world: TortureWorld, instance: String, number: Int, tls: NIOSSLContext, seed: UInt64) {
        self.world = world
        self.instance = instance
        device = "invalid-session-\(number)"
        self.tls = tls
        random = SeededDraws(seed: seed)
    }

    /// Connects again and again until the run is over.
    func run() async {
        while world.phase != .over {
            await connectOnce()
            await random.pause(1_000..<5_000)
        }
    }

    private func connectOnce() async {
        let session = "\(Self.madeUp)\(world.next())"
        guard let connection = try? await connect(session) else { return }
        defer { connection.channel.close(promise: nil) }
        let bind = bind(session)
        connection.sendConnect(
            instance: instance, device: device, store: "store", number: UInt64(world.next()), bind: bind)
        world.count("connections of devices with made-up sessions")
        await random.pause(200..<600)
        connection.send(keepParameters)
        for _ in 0..<random.draw(3..<12) where world.phase != .over && !connection.isEnded {
            connection.send(acknowledgement, confirmation)
            await random.pause(100..<1_000)
        }
    }

    /// Binds a user, as an app does at a sign-in. No misbehaving device binds this user with a valid session.
    private func bind(_ session: String) -> Mss_Device_V1_Bind {
        let user = "user-\(random.draw(0..<world.usersPerInstance / 2) * 2 + 1)"
        return .with {
            $0.bindNumber = 1
            $0.requestedByApp = true
            $0.userID = user
            $0.sessionID = session
            $0.syncPoints = Self.claimed.map { bizType in
                .with {
                    $0.kind = .user
                    $0.bizType = bizType
                    $0.oplogID = Self.hugeID
                }
            }
        }
    }

    /// Sets a parameter with which the filter would skip every checked push.
    private var keepParameters: Mss_Device_V1_Packet {
        .with {
            $0.keepParameters.number = 1
            $0.keepParameters.bindNumber = 1
            $0.keepParameters.parameters = [
                .with {
                    $0.bizType = TortureWorld.checked.bizType
                    $0.name = "least"
                    $0.value = "\(TortureWorld.level + 1)"
                }
            ]
        }
    }

    private var acknowledgement: Mss_Device_V1_Packet {
        .with {
            $0.storedAck.channels = Self.claimed.map { bizType in
                .with {
                    $0.kind = .user
                    $0.bizType = bizType
                    $0.bindNumber = 1
                    $0.upto = Self.hugeID
                }
            }
        }
    }

    private var confirmation: Mss_Device_V1_Packet {
        .with {
            $0.confirmReport.reportID = UInt64(world.next())
            $0.confirmReport.channels = Self.claimed.map { bizType in
                .with {
                    $0.kind = .user
                    $0.bizType = bizType
                    $0.bindNumber = 1
                    $0.oplogIds = (1...20).map { Self.firstID + $0 }
                }
            }
        }
    }

    /// Reports checked data, since the session is never valid, and parameters that the service stored.
    private func judge(_ packet: Mss_Device_V1_Packet, _ session: String) {
        switch packet.body {
        case .push(let push):
            for batch in push.batches where !batch.entries.isEmpty && batch.bizType.hasPrefix("CHECKED") {
                world.history.observe(
                    .stale(device: TortureWorld.name(instance, device), bizType: batch.bizType, session: session))
            }
        case .parametersKept(let kept) where kept.refusal == .none:
            let text = "\(device) of \(instance) stored a parameter of a user on an invalid session"
            world.history.ask { $0.add(.verified, world.history.elapsed, text) }
        default: break
        }
    }

    private func connect(_ session: String) async throws -> FrameConnection {
        let gateways = world.stack.gateways
        return try await .open(port: gateways[random.draw(0..<gateways.count)], tls: tls) { [self] packet in
            judge(packet, session)
            return nil
        }
    }
}
