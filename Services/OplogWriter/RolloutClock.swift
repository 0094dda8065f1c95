import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Makes the stages of roll-outs whose time has come, and tells gateways of every stage that was made, by whomever.
/// Every writer does so; gateways drop what they were told before.
struct RolloutClock: Sendable {
    /// Stages made, and told, in one turn at the most: what is left comes with the next.
    private static let turnMax = 100
    private static let limit = Duration.seconds(10)

    private let bus: MessageBus

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
        // While the broker is away, stages wait for the next turn.
        if bus.isConnected { try tellStages(on: connection) }
        if let failure { throw failure }
    }

    private func tellStages(on connection: PostgresConnection) throws(PostgresError) {
        let stages = try connection.run(RolloutStore.untold(limit: Self.turnMax), within: Self.limit)
        let gateways =
            stages.contains(where: \.isImmediate)
            ? try connection.run(LeaseBook.read, within: Self.limit).gatewayIDs : []
        for stage in stages {
            tell(stage, gateways)
            try connection.run(RolloutStore.told(stage.name, stage: stage.stage), within: Self.limit)
        }
    }

    /// Notifies the gateways of a push that goes out at once. If a notice is lost, the gateways' sweep finds the push.
    private func tell(_ stage: RolloutStore.Untold, _ gateways: [String]) {
        guard stage.isImmediate, !stage.isRecalled else { return }
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
}
