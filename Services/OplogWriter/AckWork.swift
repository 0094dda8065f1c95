import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Records how far receivers have stored their channels.
struct AckWork: LaneWork {
    typealias Command = Mss_Bus_V1_AckCommand

    static let queue = CommandQueue.ack
    static let groupBodies = 16

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_AckCommands.elements(of: body) }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) { perform(tasks, in: connection) }

    func perform(_ tasks: [LaneTask<Command>], in store: some DeliveryStore) {
        #if KNOWN_BAD
            let commands = Self.broken(tasks.flatMap(\.commands))
        #else
            let commands = tasks.flatMap(\.commands)
        #endif
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
        bus.together {
            answerEach(tasks, \.correlation) { _, _ throws(PostgresError) in
                try outcome.get()
                return .with { $0.ack = .init() }
            }
        }
    }

    #if KNOWN_BAD
        private static func broken(_ commands: [Command]) -> [Command] {
            commands.filter { !KnownBad.resendNotRecorded.isOn || $0.resentID == 0 }.map { command in
                guard KnownBad.advancesTooFar.isOn, command.resentID == 0 else { return command }
                var command = command
                command.upto += 2
                return command
            }
        }
    #endif
}
