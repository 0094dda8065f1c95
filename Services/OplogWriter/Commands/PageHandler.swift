import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Reads channels for the gateways: pages of backlogs, and the history and summary that devices request.
struct PageHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_FetchCommand

    static let queue = CommandQueue.fetch
    /// A small number, so that one store worker does not read for many sessions while another is idle.
    static let groupBodies = 8
    /// The largest number of oplogs that one turn examines.
    private static let candidatesMax = 4_096

    let bus: MessageBus
    var stores = StoreLayout.single

    /// A requested page.
    private struct Page {
        let request: Mss_Bus_V1_ReadPage
        let correlation: UInt64
        let read: PageRead
    }

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_FetchCommands.elements(of: body) }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        let database = DeliveryDatabase(connection, stores)
        for task in tasks { readPages(of: task, from: database) }
        // Pages to push come before the requests of devices.
        for task in tasks { answerRequests(of: task, on: connection) }
        bus.acknowledge(tasks)
    }

    /// Reads the pages that the task requests, and replies to them.
    func readPages(of task: StoreTask<Command>, from store: some DeliveryStore) {
        var pages: [Page] = []
        for command in task.commands {
            guard case .page(let request)? = command.body else { continue }
            do throws(PostgresError) {
                let read = PageRead(
                    channelID: request.channelID, after: OplogID(request.after),
                    start: try start(of: request, in: store),
                    limit: min(max(Int(request.limit), 1), Limits.fetchPageOplogs),
                    owner: DeviceID(nonempty: request.ownerDeviceID))
                pages.append(Page(request: request, correlation: command.correlation, read: read))
            } catch {
                fail(command.correlation, to: task.replyTo, with: error)
            }
        }
        if !pages.isEmpty { read(pages, replyTo: task.replyTo, from: store) }
    }

    private func answerRequests(of task: StoreTask<Command>, on connection: PostgresConnection) {
        for command in task.commands {
            do throws(PostgresError) {
                guard var reply = try answer(command, on: connection) else { continue }
                reply.correlation = command.correlation
                bus.reply(reply, to: task.replyTo)
            } catch {
                fail(command.correlation, to: task.replyTo, with: error)
            }
        }
    }

    private func answer(
        _ command: Command, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply? {
        switch command.body {
        case .page:
            return nil
        case .history(let request):
            let history = try history(request, on: connection)
            return .with { $0.history = history }
        case .summary(let request):
            let summary = try summary(request, on: connection)
            return .with { $0.summary = summary }
        case nil:
            return .with { $0.failure.reason = "this build does not know the command" }
        }
    }

    private func read(_ pages: [Page], replyTo: String, from store: some DeliveryStore) {
        let outcome = Result { () throws(PostgresError) in try store.pages(pages.map(\.read)) }
        bus.batched {
            for (index, page) in pages.enumerated() {
                do throws(PostgresError) {
                    let found = try outcome.get()[index].get()
                    var reply = Mss_Bus_V1_Reply()
                    reply.correlation = page.correlation
                    reply.databaseTimeMs = found.databaseTime.milliseconds
                    if let head = found.head {
                        let isFull = found.entries.count == page.read.limit
                        let last = found.entries.last?.id ?? .zero
                        reply.fetch.after = page.request.after
                        reply.fetch.upto = (isFull ? last : max(last, head)).value
                        reply.fetch.entries = (found.tombstones + found.entries.filter(\.isPersistent)).map(\.bus)
                        reply.fetch.awaitedIds = found.entries.filter { !$0.isPersistent }.map(\.id.value)
                        reply.fetch.more = isFull
                        reply.fetch.discardedUpto = page.read.start.value
                    } else {
                        reply.fetch.notOwner = true
                    }
                    bus.reply(reply, to: replyTo)
                } catch {
                    fail(page.correlation, to: replyTo, with: error)
                }
            }
        }
    }

    /// The id after which the page begins: the requested position, or with a threshold the newest discarded oplog. The
    /// threshold counts the oplogs that are valid, match the device, and existed when the backlog opened (D10).
    func start(
        of request: Mss_Bus_V1_ReadPage, in store: some DeliveryStore
    ) throws(PostgresError) -> OplogID {
        let after = OplogID(request.after)
        guard request.newest > 0 else { return after }
        let device = DeviceTraits(
            operatingSystem: SyncModel.OperatingSystem(bus: request.operatingSystem), appVersion: request.appVersion,
            slot: DeviceSlot(number: Int(request.slot)))
        // One more than the threshold: only an existing oplog can be discarded.
        var wanted = Int(request.newest) + 1
        let filters = FilterHistory(bus: request.filters)
        var below = OplogID(request.newestUpto > 0 ? request.newestUpto + 1 : .max)
        // If few oplogs match, each turn examines more of them.
        var count = wanted
        while true {
            let candidates = try store.newest(of: request.channelID, after: after, below: below, limit: count)
            let matching = candidates.filter { candidate in
                (request.anyDevice || candidate.targeting.exclusion(of: device) == nil)
                    && filters?.flows(candidate.id, attributes: candidate.attributes) != false
            }
            if matching.count >= wanted { return matching[wanted - 1].id }
            guard let lowest = candidates.last, candidates.count >= count else { return after }
            wanted -= matching.count
            below = lowest.id
            count = min(max(count * 4, 64), Self.candidatesMax)
        }
    }
}

extension DeviceID {
    /// The value is nil if the text is empty.
    init?(nonempty text: String) {
        guard !text.isEmpty else { return nil }
        self.init(text)
    }
}
