import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore
import Synchronization

/// Makes the stages of roll-outs whose time has come, and tells gateways and statistics of every stage that was made,
/// by whomever. Every writer does so; what two tell counts once.
final class RolloutClock: Sendable {
    /// Stages made, and told, in one turn at the most: what is left comes with the next.
    private static let turnMax = 100
    private static let limit = Duration.seconds(10)

    private struct Told: Sendable {
        let name: Rollout.Name
        let stage: Int
    }

    private let bus: MessageBus
    /// The broker has the facts of these.
    private let told = Mutex<[Told]>([])

    init(bus: MessageBus) { self.bus = bus }

    /// Does what is due now; called once a second.
    func tick(on connection: PostgresConnection) throws(PostgresError) {
        // What one roll-out fails at keeps nobody from hearing of the others.
        var failure: PostgresError?
        do throws(PostgresError) {
            for _ in 0..<Self.turnMax {
                guard try connection.run(RolloutStore.widenDue, within: Self.limit) else { break }
            }
        } catch {
            failure = error
        }
        for stage in told.withLock({ Array($0) }) {
            try connection.run(RolloutStore.told(stage.name, stage: stage.stage), within: Self.limit)
            told.withLock { _ = $0.removeFirst() }
        }
        let stages = try connection.run(RolloutStore.untold(limit: Self.turnMax), within: Self.limit)
        let gateways =
            stages.contains(where: \.isImmediate)
            ? try connection.run(LeaseBook.read, within: Self.limit).gatewayIDs : []
        for stage in stages { tell(stage, gateways) }
        if let failure { throw failure }
    }

    /// Tells gateways where the push goes out at once, and statistics; what is lost here, the sweep and the next
    /// turn make good.
    private func tell(_ stage: RolloutStore.Untold, _ gateways: [String]) {
        if stage.isImmediate, !stage.isRecalled {
            let notice = Mss_Bus_V1_GatewayNotice.with {
                $0.oplogs.channelID = stage.channelID
                $0.oplogs.target = stage.address.target.bus
                $0.oplogs.bizType = stage.address.bizType.text
                // Nothing lies between two numbers that follow each other.
                $0.oplogs.after = stage.oplog.id.value - 1
                $0.oplogs.upto = stage.oplog.id.value
                $0.oplogs.entries = [stage.oplog.bus]
            }
            for gateway in gateways { bus.notify(gateway: gateway, notice) }
        }
        let fact = Mss_Bus_V1_Fact.with {
            $0.atMs = stage.oplog.createdAt.milliseconds
            $0.channelID = stage.channelID
            $0.accepted.oplogID = stage.oplog.id.value
        }
        // Without the broker's word it is told again with the next turn.
        try? bus.record([fact]) { [self] isRecorded in
            if isRecorded { told.withLock { $0.append(Told(name: stage.name, stage: stage.stage)) } }
        }
    }
}
