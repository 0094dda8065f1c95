import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Reads channels for the gateways: pages to push, and what devices ask for.
struct FetchWork: LaneWork {
    typealias Command = Mss_Bus_V1_FetchCommand

    static let queue = CommandQueue.fetch
    /// Few, so that one lane does not read for many sessions while another is idle.
    static let groupBodies = 8
    /// Standings looked at in one turn at the most.
    private static let standingsMax = 4_096

    let bus: MessageBus

    /// A page on its way.
    private struct Page {
        let request: Mss_Bus_V1_ReadPage
        let correlation: UInt64
        let read: PageRead
    }

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_FetchCommands.elements(of: body) }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        for task in tasks { readPages(of: task, from: connection) }
        // What devices ask for comes after what is pushed to them.
        for task in tasks { answerRequests(of: task, on: connection) }
        bus.settle(tasks.map(\.delivery), as: .accepted)
    }

    /// Answers what of the task asks for pages to push.
    func readPages(of task: LaneTask<Command>, from store: some DeliveryStore) {
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

    private func answerRequests(of task: LaneTask<Command>, on connection: PostgresConnection) {
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
        bus.together {
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
                        #if KNOWN_BAD
                            if KnownBad.pageSaysHead.isOn { reply.fetch.upto = max(last, head).value }
                            if KnownBad.pageSkips.isOn, found.entries.count > 1 { reply.fetch.entries.removeFirst() }
                        #endif
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

    /// Where reading begins: after the position asked for, or, under a threshold, after the newest oplog that it passes
    /// over, counting those that are valid, match the device and were there when the backlog opened (spec D10).
    func start(
        of request: Mss_Bus_V1_ReadPage, in store: some DeliveryStore
    ) throws(PostgresError) -> OplogID {
        let after = OplogID(request.after)
        guard request.newest > 0 else { return after }
        let device = DeviceTraits(
            operatingSystem: SyncModel.OperatingSystem(bus: request.operatingSystem), appVersion: request.appVersion,
            slot: DeviceSlot(number: Int(request.slot)))
        // One more than goes out: only what is there can be passed over.
        var wanted = Int(request.newest) + 1
        let filters = FilterHistory(bus: request.filters)
        #if KNOWN_BAD
            let isBounded = request.newestUpto > 0 && !KnownBad.thresholdCountsNew.isOn
        #else
            let isBounded = request.newestUpto > 0
        #endif
        var below = OplogID(isBounded ? request.newestUpto + 1 : .max)
        // Where few match, more are looked at in each turn.
        var count = wanted
        while true {
            let standings = try store.newest(of: request.channelID, after: after, below: below, limit: count)
            let matching = standings.filter { standing in
                (request.anyDevice || standing.targeting.exclusion(of: device) == nil)
                    && filters?.flows(standing.id, attributes: standing.attributes) != false
            }
            if matching.count >= wanted { return matching[wanted - 1].id }
            guard let lowest = standings.last, standings.count >= count else { return after }
            wanted -= matching.count
            below = lowest.id
            count = min(max(count * 4, 64), Self.standingsMax)
        }
    }
}

extension DeviceID {
    /// Nil for an empty text.
    init?(nonempty text: String) {
        guard !text.isEmpty else { return nil }
        self.init(text)
    }
}
