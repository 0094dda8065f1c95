import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Raises sync points to the acknowledged oplogs, and records resends.
struct AcknowledgementHandler: StoreCommandHandler {
    typealias Command = Mss_Bus_V1_AckCommand

    static let queue = CommandQueue.ack
    static let groupBodies = 16

    let bus: MessageBus
    var stores = StoreLayout.single

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_AckCommands.elements(of: body) }

    static func storeNumber(of command: Command, in stores: StoreLayout) -> Int {
        stores.number(ofID: command.channelID)
    }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        perform(tasks, in: DeliveryDatabase(connection, stores))
    }

    func perform(_ tasks: [StoreTask<Command>], in store: some DeliveryStore) {
        let commands = tasks.flatMap(\.commands)
        let resends = commands.filter { $0.resentID > 0 }.map { command in
            SyncPointStore.Resend(
                channelID: command.channelID, deviceID: command.deviceID, storeID: command.storeID,
                userID: command.userID, oplogID: OplogID(command.resentID), repeats: Int(command.repeats))
        }
        let advances = commands.filter { $0.resentID == 0 }.map { command in
            SyncPointStore.Advance(
                channelID: command.channelID, deviceID: command.deviceID, storeID: command.storeID,
                userID: command.userID, upto: OplogID(command.upto), acknowledged: OplogID(command.acknowledged),
                storedBy: command.storedBy)
        }
        let outcome = Result { () throws(PostgresError) in try store.record(resends, advances) }
        bus.batched {
            answerEach(tasks, \.correlation) { _, _ throws(PostgresError) in
                try outcome.get()
                return .with { $0.ack = .init() }
            }
        }
    }
}
