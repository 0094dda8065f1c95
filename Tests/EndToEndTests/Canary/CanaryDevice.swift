import DeviceProtocol
import Foundation
import SwiftProtobuf
import Synchronization

/// One device of the canary run. It connects to random gateways, changes users and sessions, has sessions revoked, and
/// takes over its own connections.
final class CanaryDevice: Sendable {
    /// The longest delay of data with a verdict lifetime of zero: the limit of a verdict request plus the limit of a
    /// page read (V5).
    private static let questionLimit = Duration.seconds(9)

    private let campaign: CanaryCampaign
    private let instance: String
    private let name: String

    init(_ campaign: CanaryCampaign, instance: String, name: String) {
        (self.campaign, self.instance, self.name) = (campaign, instance, name)
    }

    /// Runs until the run is over.
    func run() async {
        await withDiscardingTaskGroup { group in
            var old: CanaryConnection?
            while !campaign.isOver {
                guard var visit = try? await connect() else {
                    await pause(upTo: 200)
                    continue
                }
                // The previous connection can still be open: the new connection takes the device over.
                if let old { await end(old) }
                for _ in 0..<Int.random(in: 3...25) where !campaign.isOver && visit.connection.isConnected {
                    await pause(upTo: 500)
                    await step(&visit, &group)
                }
                if Bool.random() {
                    old = visit
                    campaign.count { $0.takeovers += 1 }
                } else {
                    await end(visit)
                    old = nil
                }
            }
            if let old { await end(old) }
            group.cancelAll()
        }
    }

    private func end(_ visit: CanaryConnection) async {
        try? await visit.connection.disconnect()
        let tally = visit.judge.ask { $0.tally }
        campaign.count { $0.received += tally }
    }

    private func pause(upTo milliseconds: Int) async {
        try? await ContinuousClock().sleep(for: .milliseconds(Int.random(in: 20...milliseconds)))
    }

    private func connect() async throws -> CanaryConnection {
        let judge = CanaryConnection.Judge(CanaryJudge(instance: instance, device: name))
        let campaign = campaign
        let connection = try await RawDevice.open(
            campaign.stack, over: .plain, gateway: .random(in: 0...1),
            answering: { packet in
                campaign.report(judge.ask { $0.received(packet) })
                return Self.acknowledgement(of: packet)
            })
        var visit = CanaryConnection(instance: instance, device: name, connection: connection, judge: judge)
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

    /// Usually answers at once; sometimes sends no acknowledgement.
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

    private func step(_ visit: inout CanaryConnection, _ group: inout DiscardingTaskGroup) async {
        switch Int.random(in: 0..<100) {
        case 0..<65:
            let bind = newBind(&visit)
            try? await visit.connection.send(.with { $0.bind = bind })
        case 65..<72:
            let isForeground = Bool.random()
            try? await visit.connection.send(.with { $0.foreground.foreground = isForeground })
        case 72..<84 where !visit.user.isEmpty:
            campaign.tenant.end(visit.session)
            campaign.count { $0.endedSessions += 1 }
            let ended = visit
            group.addTask { await self.drawLines(after: "its session had ended", ended) }
        case 84..<90 where !visit.user.isEmpty: await revoke(visit)
        default: break
        }
    }

    /// The next bind of this connection: a user with a new session of their own, or sometimes no user.
    private func newBind(_ visit: inout CanaryConnection) -> Mss_Device_V1_Bind {
        visit.bindNumber += 1
        visit.user = Int.random(in: 0..<10) == 0 ? "" : CanaryCampaign.users[.random(in: CanaryCampaign.users.indices)]
        visit.session = visit.user.isEmpty ? "" : "session-\(campaign.next())"
        let (number, user, session) = (visit.bindNumber, visit.user, visit.session)
        visit.judge.ask { $0.bound(user, as: number) }
        campaign.count { $0.binds += 1 }
        campaign.recordBind(visit)
        return .with {
            $0.bindNumber = number
            $0.userID = user
            $0.sessionID = session
            $0.requestedByApp = true
        }
    }

    /// For each Sync ID, draws a line at the time when the earlier verdict has become too old for it.
    private func drawLines(after why: String, _ visit: CanaryConnection) async {
        let began = ContinuousClock.now
        for (bizType, lifetime) in CanaryCampaign.lifetimes.sorted(by: { $0.value < $1.value }) where lifetime > .zero {
            try? await ContinuousClock().sleep(until: began + lifetime)
            await visit.drawLine([bizType], "\(why) \(lifetime) before", number: UInt64(campaign.next()))
        }
        try? await ContinuousClock().sleep(until: began + Self.questionLimit)
        await visit.drawLine(
            Set(CanaryCampaign.lifetimes.keys), "\(why) \(Self.questionLimit) before", number: UInt64(campaign.next()))
    }

    /// Has the session, or all sessions of the user, revoked. After the API answers success, no device that is bound to
    /// a revoked session may receive checked data.
    private func revoke(_ visit: CanaryConnection) async {
        let session = Bool.random() ? visit.session : nil
        // A bind without an answer may be registered after the revocation; the tenant is then asked again.
        let concerned = (session == nil ? campaign.visits(of: visit.user, in: instance) : [visit]).filter(\.isAnswered)
        // The tenant's endpoint can learn of the revocation later.
        if Bool.random() { campaign.tenant.end(visit.session) }
        guard await campaign.revoke(session, of: visit.user, in: instance) else { return }
        campaign.count { $0.revocations += 1 }
        for one in concerned {
            let why = "\(session == nil ? "every session of \(visit.user)" : "the session") was revoked"
            await one.drawLine(Set(CanaryCampaign.lifetimes.keys), why, number: UInt64(campaign.next()))
        }
    }
}
