import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Reads pages of channels for the gateways.
struct FetchWork: LaneWork {
    typealias Command = Mss_Bus_V1_FetchCommand

    static let queue = CommandQueue.fetch
    /// Few, so that one lane does not read for many sessions while another is idle.
    static let groupBodies = 8
    /// Standings looked at in one turn at the most.
    private static let standingsMax = 4_096

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_FetchCommands.elements(of: body) }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        for task in tasks {
            var pages: [(command: Command, start: OplogID)] = []
            for command in task.commands {
                do throws(PostgresError) {
                    pages.append((command, try start(of: command, on: connection)))
                } catch {
                    fail(command.correlation, to: task.replyTo, with: error)
                }
            }
            read(pages, replyTo: task.replyTo, on: connection)
            bus.settle([task.delivery], as: .accepted)
        }
    }

    /// Heads and pages in one round trip; each head is read before its page.
    private func read(
        _ pages: [(command: Command, start: OplogID)], replyTo: String, on connection: PostgresConnection
    ) {
        let queries = pages.map { command, start in
            let limit = min(max(Int(command.limit), 1), Limits.fetchPageOplogs)
            let after = OplogID(command.after)
            return (
                tombstones: OplogStore.tombstones(
                    of: command.channelID, after: after, upto: start, limit: Limits.fetchPageOplogs),
                head: OplogStore.head(
                    of: command.channelID,
                    readBy: command.ownerDeviceID.isEmpty ? nil : DeviceID(command.ownerDeviceID)),
                page: OplogStore.page(of: command.channelID, after: start, limit: limit), limit: limit
            )
        }
        do throws(PostgresError) {
            let results = try connection.run(
                queries.flatMap { [$0.head.statement, $0.page.statement, $0.tombstones.statement] },
                within: .seconds(10))
            for (index, query) in queries.enumerated() {
                let command = pages[index].command
                do throws(PostgresError) {
                    guard let head = query.head.decode(try results[3 * index].get()) else {
                        bus.reply(
                            .with {
                                $0.correlation = command.correlation
                                $0.fetch.notOwner = true
                            }, to: replyTo)
                        continue
                    }
                    let entries = query.page.decode(try results[3 * index + 1].get())
                    let tombstones = query.tombstones.decode(try results[3 * index + 2].get())
                    let isFull = entries.count == query.limit
                    let last = entries.last?.id ?? .zero
                    bus.reply(
                        .with {
                            $0.correlation = command.correlation
                            $0.fetch.after = command.after
                            $0.fetch.upto = (isFull ? last : max(last, head)).value
                            $0.fetch.entries = (tombstones + entries).map(\.bus)
                            $0.fetch.more = isFull
                            $0.fetch.discardedUpto = pages[index].start.value
                        }, to: replyTo)
                } catch {
                    fail(command.correlation, to: replyTo, with: error)
                }
            }
        } catch {
            for page in pages { fail(page.command.correlation, to: replyTo, with: error) }
        }
    }

    /// Where reading begins: after the position asked for, or, under a threshold, just below the newest so many oplogs
    /// that are valid and match the device (spec D10).
    private func start(of command: Command, on connection: PostgresConnection) throws(PostgresError) -> OplogID {
        let after = OplogID(command.after)
        guard command.newest > 0 else { return after }
        let device = DeviceTraits(
            operatingSystem: SyncModel.OperatingSystem(bus: command.operatingSystem), appVersion: command.appVersion)
        var wanted = Int(command.newest)
        var below = OplogID(Int64.max)
        // Where few match, more are looked at in each turn.
        var count = wanted
        while true {
            let query = OplogStore.newest(of: command.channelID, after: after, below: below, limit: count)
            let standings = try connection.run(query, within: .seconds(10))
            let matching = standings.filter { command.anyDevice || $0.targeting.exclusion(of: device) == nil }
            if matching.count >= wanted { return OplogID(matching[wanted - 1].id.value - 1) }
            guard let lowest = standings.last, standings.count >= count else { return after }
            wanted -= matching.count
            below = lowest.id
            count = min(max(count * 4, 64), Self.standingsMax)
        }
    }
}
