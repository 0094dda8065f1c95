import BusMessages
import PostgreSQL
import ServiceKit
import SyncStore

/// Keeps gateways' leases: what `SessionWork` does, on a queue and a lane where nothing else is waited for.
struct LeaseWork: LaneWork {
    typealias Command = Mss_Bus_V1_SessionCommand

    static let queue = CommandQueue.lease
    static let groupBodies = 16

    let sessions: SessionWork

    var bus: MessageBus { sessions.bus }

    static func commands(of body: [UInt8]) -> [Command]? { SessionWork.commands(of: body) }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) { perform(tasks, in: connection) }

    func perform(_ tasks: [LaneTask<Command>], in store: some DeliveryStore) { sessions.perform(tasks, in: store) }
}
