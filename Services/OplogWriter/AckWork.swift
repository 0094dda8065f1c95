import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore

/// Records how far receivers have stored their channels.
struct AckWork: LaneWork {
    typealias Command = Mss_Bus_V1_AckCommand

    static let queue = CommandQueue.ack
    static let groupBodies = 16

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_AckCommands.elements(of: body) }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        let commands = tasks.flatMap(\.commands)
        let resends = commands.filter { $0.resentID > 0 }.map { command in
            SyncPointStore.noteResend(
                channelID: command.channelID, deviceID: command.deviceID, storeID: command.storeID,
                oplogID: OplogID(command.resentID), repeats: Int(command.repeats))
        }
        let advances = commands.filter { $0.resentID == 0 }.map { command in
            SyncPointStore.Advance(
                channelID: command.channelID, deviceID: command.deviceID, storeID: command.storeID,
                upto: OplogID(command.upto))
        }
        do throws(PostgresError) {
            for result in try connection.run(resends + [SyncPointStore.advance(advances)], within: .seconds(10)) {
                try result.get()
            }
            for task in tasks {
                for command in task.commands {
                    var reply = Mss_Bus_V1_Reply()
                    reply.correlation = command.correlation
                    reply.ack = .init()
                    bus.reply(reply, to: task.replyTo)
                }
            }
        } catch {
            for task in tasks {
                for command in task.commands { fail(command.correlation, to: task.replyTo, with: error) }
            }
        }
        bus.settle(tasks.map(\.delivery), as: .accepted)
    }
}
