import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Makes the stages of roll-outs that are due, and notifies the gateways of each new stage, also of the stages that an
/// operator made. Every writer does this; gateways drop repeated notices.
struct RolloutClock: Sendable {
    /// The largest number of stages that one turn makes in each store, and of those that it announces. The next turn
    /// continues.
    private static let turnMax = 100
    private static let limit = Duration.seconds(10)

    private let bus: MessageBus
    private let stores: StoreLayout

    init(bus: MessageBus, stores: StoreLayout = .single) { (self.bus, self.stores) = (bus, stores) }

    /// Makes and announces the stages that are due now. The writer calls this once a second.
    func tick(on connection: PostgresConnection) throws(PostgresError) {
        // A failure of one roll-out must not delay the announcement of the others.
        var failure: PostgresError?
        for store in stores.stores {
            do throws(PostgresError) {
                for _ in 0..<Self.turnMax {
                    guard try connection.run(RolloutStore.widenDue(in: store), within: Self.limit) else { break }
                }
            } catch {
                failure = error
            }
        }
        // Without a connection to the broker, the stages wait for the next turn.
        if bus.isConnected { try announceStages(on: connection) }
        if let failure { throw failure }
    }

    private func announceStages(on connection: PostgresConnection) throws(PostgresError) {
        let stages = try connection.run(RolloutStore.unannounced(limit: Self.turnMax), within: Self.limit)
        let gateways =
            stages.contains(where: \.isImmediate)
            ? try connection.run(LeaseRecord.read, within: Self.limit).gatewayIDs : []
        for stage in stages {
            notify(gateways, of: stage)
            try connection.run(RolloutStore.markAnnounced(stage.name, stage: stage.stage), within: Self.limit)
        }
    }

    /// Notifies the gateways of an immediate push. If a notice is lost, the gateways' sweep finds the push.
    private func notify(_ gateways: [String], of stage: RolloutStore.UnannouncedStage) {
        guard stage.isImmediate, !stage.isRecalled else { return }
        let notice = Mss_Bus_V1_GatewayNotice.with {
            $0.oplogs.channelID = stage.channelID
            $0.oplogs.target = stage.address.target.bus
            $0.oplogs.bizType = stage.address.bizType.text
            // No id lies between two consecutive numbers.
            $0.oplogs.after = stage.oplog.id.value - 1
            $0.oplogs.upto = stage.oplog.id.value
            $0.oplogs.entries = [stage.oplog.bus]
        }
        for gateway in gateways { bus.notify(gateway: gateway, notice) }
    }
}
