import DeviceProtocol
import Foundation
import SwiftProtobuf
import Synchronization

/// One device of the canary run: connects here and there, changes users and sessions, has sessions ended, and takes
/// its own connections over.
final class CanaryDevice: Sendable {
    /// How late data of a lifetime of zero may be: a question's limit and a page's (spec V5).
    private static let questionLimit = Duration.seconds(9)

    private let world: CanaryWorld
    private let instance: String
    private let name: String

    init(_ world: CanaryWorld, instance: String, name: String) {
        (self.world, self.instance, self.name) = (world, instance, name)
    }

    /// Lives until the run is over.
    func run() async {
        await withDiscardingTaskGroup { group in
            var old: CanaryVisit?
            while !world.isOver {
                guard var visit = try? await connect() else {
                    await pause(upTo: 200)
                    continue
                }
                // The one before may still be open: the new connection takes the device over.
                if let old { await end(old) }
                for _ in 0..<Int.random(in: 3...25) where !world.isOver && visit.connection.isConnected {
                    await pause(upTo: 500)
                    await step(&visit, &group)
                }
                if Bool.random() {
                    old = visit
                    world.count { $0.takeovers += 1 }
                } else {
                    await end(visit)
                    old = nil
                }
            }
            if let old { await end(old) }
            group.cancelAll()
        }
    }

    private func end(_ visit: CanaryVisit) async {
        try? await visit.connection.disconnect()
        let tally = visit.judge.ask { $0.tally }
        world.count { $0.received += tally }
    }

    private func pause(upTo milliseconds: Int) async {
        try? await ContinuousClock().sleep(for: .milliseconds(Int.random(in: 20...milliseconds)))
    }

    private func connect() async throws -> CanaryVisit {
        let judge = CanaryVisit.Judge(CanaryJudge(instance: instance, device: name))
        let world = world
        let connection = try await RawDevice.open(
            world.stack, over: .plain, gateway: .random(in: 0...1),
            answering: { packet in
                world.report(judge.ask { $0.received(packet) })
                return Self.acknowledgement(of: packet)
            })
        var visit = CanaryVisit(instance: instance, device: name, connection: connection, judge: judge)
        let bind = Bool.random() ? newBind(&visit) : nil
        try await connection.send(
            .with {
                $0.connect.protocolVersion = DeviceProtocolLimits.version
                $0.connect.instanceID = instance
                $0.connect.deviceID = name
                $0.connect.storeID = "store-\(Int.random(in: 0...3))"
                $0.connect.osName = "iOS"
                $0.connect.appVersion = "1.0"
                if let bind { $0.connect.bind = bind }
            })
        return visit
    }

    /// Mostly at once, now and then not at all.
    private static func acknowledgement(of packet: Mss_Device_V1_Packet) -> [Mss_Device_V1_Packet] {
        guard case .push(let push) = packet.body, Int.random(in: 0..<20) > 0 else { return [] }
        return [
            .with {
                $0.storedAck.channels = push.batches.map { batch in
                    .with {
                        $0.kind = batch.kind
                        $0.bizType = batch.bizType
                        $0.bindNumber = batch.bindNumber
                        $0.upto = batch.upto
                    }
                }
            }
        ]
    }

    private func step(_ visit: inout CanaryVisit, _ group: inout DiscardingTaskGroup) async {
        switch Int.random(in: 0..<100) {
        case 0..<65:
            let bind = newBind(&visit)
            try? await visit.connection.send(.with { $0.bind = bind })
        case 65..<72:
            let isForeground = Bool.random()
            try? await visit.connection.send(.with { $0.foreground.foreground = isForeground })
        case 72..<84 where !visit.user.isEmpty:
            world.tenant.end(visit.session)
            world.count { $0.endedSessions += 1 }
            let ended = visit
            group.addTask { await self.drawLines(after: "its session had ended", ended) }
        case 84..<90 where !visit.user.isEmpty: await revoke(visit)
        default: break
        }
    }

    /// The next user of this connection, sometimes nobody, with a session of his own.
    private func newBind(_ visit: inout CanaryVisit) -> Mss_Device_V1_Bind {
        visit.bindNumber += 1
        visit.user = Int.random(in: 0..<10) == 0 ? "" : CanaryWorld.users[.random(in: CanaryWorld.users.indices)]
        visit.session = visit.user.isEmpty ? "" : "session-\(world.next())"
        let (number, user, session) = (visit.bindNumber, visit.user, visit.session)
        visit.judge.ask { $0.bound(user, as: number) }
        world.count { $0.binds += 1 }
        world.note(visit)
        return .with {
            $0.bindNumber = number
            $0.userID = user
            $0.sessionID = session
            $0.requestedByApp = true
        }
    }

    /// Each Sync ID's data stops when a verdict from before can no longer count.
    private func drawLines(after why: String, _ visit: CanaryVisit) async {
        let began = ContinuousClock.now
        for (bizType, lifetime) in CanaryWorld.lifetimes.sorted(by: { $0.value < $1.value }) where lifetime > .zero {
            try? await ContinuousClock().sleep(until: began + lifetime)
            await visit.drawLine([bizType], "\(why) \(lifetime) before", number: UInt64(world.next()))
        }
        try? await ContinuousClock().sleep(until: began + Self.questionLimit)
        await visit.drawLine(
            Set(CanaryWorld.lifetimes.keys), "\(why) \(Self.questionLimit) before", number: UInt64(world.next()))
    }

    /// Once the service has said that it is done, nothing checked comes to whom it concerns, whoever holds him.
    private func revoke(_ visit: CanaryVisit) async {
        let session = Bool.random() ? visit.session : nil
        // A bind that is still on its way may be registered after the revocation: then the tenant is asked anew.
        let concerned = (session == nil ? world.visits(of: visit.user, in: instance) : [visit]).filter(\.isAnswered)
        // A tenant may be late to know it himself.
        if Bool.random() { world.tenant.end(visit.session) }
        guard await world.revoke(session, of: visit.user, in: instance) else { return }
        world.count { $0.revocations += 1 }
        for one in concerned {
            let why = "\(session == nil ? "every session of \(visit.user)" : "the session") was revoked"
            await one.drawLine(Set(CanaryWorld.lifetimes.keys), why, number: UInt64(world.next()))
        }
    }
}
