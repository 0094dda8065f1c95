import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

/// A Sync ID with filters: the filter that decides each oplog, and oplogs that wait during a registration.
@Suite("Gateway: subscription parameters")
struct SessionParameterTests {
    private static let rules = SubscriptionText(
        filter: "n >= $from", attributes: "n number", parameters: "from number = 0")

    private static func bench(repush: RepushMode = .all) -> Bench {
        var configuration = Bench.configuration("B", repush: repush)
        configuration.subscription = rules
        configuration.isFiltered = true
        return Bench([configuration, Bench.configuration("C")])
    }

    private static func filter(_ from: Double) -> String {
        let rules = try? SubscriptionRules(Self.rules)
        return rules?.resolved(device: SubscriptionValues(["from": .number(from)]), user: SubscriptionValues()).text
            ?? ""
    }

    /// The reply to a registration, with the filters of B as (last oplog id or 0, filter).
    private static func reply(head: Int64, point: Int64 = 0, _ filters: [(Int64, Double)]) -> Mss_Bus_V1_SessionReply {
        var reply = Bench.reply([("B", 3, head, point), ("C", 4, 0, 0)])
        reply.channels[0].filters = filters.map { upto, from in
            .with {
                $0.upto = upto
                $0.filter = filter(from)
            }
        }
        return reply
    }

    /// A notice; the attribute n of each oplog is its id.
    private static func notice(after: Int64, ids: [Int64], persistent: Bool = true) -> ChannelNotice {
        let notice = Bench.notice("B", channel: 3, after: after, ids: ids, persistent: persistent)
        return ChannelNotice(
            channelID: 3, address: notice.address, after: notice.after, upto: notice.upto,
            entries: notice.entries.map { entry in
                var entry = entry
                entry.attributes = "{\"n\":\(entry.id.value)}"
                return entry
            })
    }

    private static func parameter(_ value: String, _ name: String = "from", of bizType: String = "B")
        -> Mss_Device_V1_Parameter
    {
        .with {
            $0.bizType = bizType
            $0.name = name
            $0.value = value
        }
    }

    private static func set(_ value: String, on bench: inout Bench) -> [SessionAction] {
        bench.receive { $0.subscriptions.parameters = [parameter(value)] }
    }

    private static func registered(_ reply: Mss_Bus_V1_SessionReply, on bench: inout Bench) -> [SessionAction] {
        bench.handle(.registered(reply, bindNumber: 1))
    }

    @Test("the filter in force at the append decides each oplog; filtered-out oplogs move the position")
    func segments() {
        var bench = Self.bench()
        bench.connect { $0.parameters = [Self.parameter("7")] }
        let opened = Self.registered(Self.reply(head: 4, [(4, 2), (0, 7)]), on: &bench)
        #expect(opened.fetches.map(\.after) == [0])
        var page = Bench.page(after: 0, ids: [1, 2, 3, 4])
        for place in page.entries.indices { page.entries[place].attributes = "{\"n\":\(page.entries[place].id)}" }
        let first = bench.handle(.fetched(page, channelID: 3))
        #expect(first.pushed == [2, 3, 4])
        let next = bench.handle(.noticed(Self.notice(after: 4, ids: [5, 6, 7])))
        #expect(next.pushed == [7] && next.batches.map(\.after) == [4] && next.batches.map(\.upto) == [7])
        #expect(bench.handle(.noticed(Self.notice(after: 7, ids: [8]))).pushed == [8])
    }

    @Test("a filter lets no oplogs without attributes through; tombstones pass every filter")
    func without() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        let notice = Bench.notice("B", channel: 3, after: 0, ids: [1])
        #expect(bench.handle(.noticed(notice)).pushed.isEmpty)
        var mark = Bench.oplog(2)
        mark.recalls = OplogID(1)
        // The device has a recalled oplog only when it was sent that oplog.
        bench.machine.write(bench.handle(.noticed(Self.notice(after: 1, ids: [2, 3]))))
        mark.id = OplogID(4)
        mark.recalls = OplogID(3)
        let recall = ChannelNotice(
            channelID: 3, address: notice.address, after: OplogID(3), upto: OplogID(4), entries: [mark])
        #expect(bench.handle(.noticed(recall)).pushed == [4])
    }

    @Test("a changed value registers at once; the channel waits for the reply and its new filter")
    func changeHolds() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        let changed = Self.set("3", on: &bench)
        #expect(changed.opens == 1 && changed.announced.map(\.subscriptions.parameters.count) == [1])
        #expect(changed.announced.map(\.subscriptions.filtered) == [[BizType("B")]])
        // The store had the change before both notices.
        #expect(bench.handle(.noticed(Self.notice(after: 0, ids: [1, 2]))).pushed.isEmpty)
        #expect(bench.handle(.noticed(Self.notice(after: 2, ids: [3]))).pushed.isEmpty)
        #expect(
            bench.handle(.noticed(Bench.notice("C", channel: 4, after: 0, ids: [1]))).pushed == [1],
            "an unfiltered one goes on")
        let answered = Self.registered(Self.reply(head: 3, [(0, 3)]), on: &bench)
        #expect(answered.fetches.map(\.after) == [0])
        var page = Bench.page(after: 0, ids: [1, 2, 3])
        for place in page.entries.indices { page.entries[place].attributes = "{\"n\":\(page.entries[place].id)}" }
        #expect(bench.handle(.fetched(page, channelID: 3)).pushed == [3])
        #expect(Self.set("3", on: &bench).isEmpty, "the same list")
    }

    @Test("a page from before the change is dropped, and non-persistent pushes are kept")
    func pageUnderWay() {
        var bench = Self.bench()
        bench.connect()
        let opened = Self.registered(Self.reply(head: 2, [(0, 0)]), on: &bench)
        #expect(opened.fetches.count == 1)
        _ = Self.set("2", on: &bench)
        var page = Bench.page(after: 0, ids: [1, 2])
        for place in page.entries.indices { page.entries[place].attributes = "{\"n\":\(page.entries[place].id)}" }
        #expect(bench.handle(.fetched(page, channelID: 3)).pushed.isEmpty)
        let live = Self.notice(after: 2, ids: [3], persistent: false)
        _ = bench.handle(.noticed(live))
        #expect(bench.replyEntries(of: live).held == [3])
        let answered = Self.registered(Self.reply(head: 3, [(2, 0), (0, 2)]), on: &bench)
        #expect(answered.fetches.map(\.after) == [0])
        page.upto = 3
        #expect(bench.handle(.fetched(page, channelID: 3)).pushed == [1, 2, 3])
    }

    @Test("a failed registration is repeated while the channel waits; after two changes the last one counts")
    func failure() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        #expect(Self.set("3", on: &bench).opens == 1)
        #expect(Self.set("4", on: &bench).opens == 0, "one at a time")
        _ = bench.handle(.registered(nil, bindNumber: 1))
        #expect(bench.handle(.noticed(Self.notice(after: 0, ids: [9]))).pushed.isEmpty)
        bench.now += .seconds(1)
        let again = bench.handle(.ticked)
        #expect(again.announced.map { $0.subscriptions.parameters.map(\.value) } == [[.number(4)]])
        #expect(Self.set("5", on: &bench).opens == 0)
        let answered = Self.registered(Self.reply(head: 9, [(0, 4)]), on: &bench)
        #expect(answered.announced.map { $0.subscriptions.parameters.map(\.value) } == [[.number(5)]])
    }

    @Test("a new or changed filter of a configuration makes the session register before it sends")
    func configurationChanges() {
        var bench = Self.bench()
        let filtered = bench.configurations[BizType("B")]
        bench.configurations[BizType("B")] = Bench.configuration("B")
        bench.open([("B", 3, 0, 0)])
        #expect(bench.handle(.noticed(Self.notice(after: 0, ids: [1]))).pushed == [1])
        bench.configurations[BizType("B")] = filtered
        #expect(bench.handle(.noticed(Self.notice(after: 1, ids: [2]))).pushed.isEmpty)
        #expect(bench.handle(.contextChanged).opens + (bench.machine.isRegistering ? 1 : 0) >= 1)
        let again = Self.registered(Self.reply(head: 2, [(2, 0), (0, 9)]), on: &bench)
        #expect(again.opens == 1, "the rules changed while the store was asked")
        _ = Self.registered(Self.reply(head: 2, [(2, 0), (0, 9)]), on: &bench)
        #expect(bench.handle(.contextChanged).opens == 0)
        bench.configurations[BizType("B")]?.subscription.filter = "n == 1"
        #expect(bench.handle(.contextChanged).opens == 1)
    }

    @Test("a threshold counts matching oplogs: page, history and summary requests carry the filters")
    func requests() {
        var bench = Self.bench(repush: .threshold(5))
        bench.connect()
        let opened = Self.registered(Self.reply(head: 9, [(4, 2), (0, 7)]), on: &bench)
        let pages = opened.compactMap { if case .fetch(let page) = $0 { page } else { nil } }
        #expect(pages.map(\.newest) == [5] && pages.map { $0.filters?.segments.count } == [2])
        let asked = bench.receive {
            $0.historyRequest.requestNumber = 1
            $0.historyRequest.bizType = "B"
            $0.historyRequest.bindNumber = 1
            $0.historyRequest.count = 5
        }
        #expect(asked.historyReads.map(\.filter.text) == [Self.filter(7)])
        let summary = bench.receive {
            $0.summaryRequest.requestNumber = 2
            $0.summaryRequest.bindNumber = 1
            $0.summaryRequest.count = 5
        }
        // C has no oplog.
        #expect(summary.summaryReads.flatMap(\.channels).map(\.filter.text) == [Self.filter(7)])
    }

    @Test("impossible lists end the connection: over 64 values, or an invalid value")
    func limits() {
        let many = (0..<65).map { Self.parameter("1", "p\($0)") }
        for list in [many, [Self.parameter("x")], [Self.parameter("")], [Self.parameter("null")]] {
            var bench = Self.bench()
            bench.open()
            #expect(bench.receive { $0.subscriptions.parameters = list }.closeCode == .protocolViolation)
            bench = Self.bench()
            #expect(bench.connect { $0.parameters = list }.closeCode == .protocolViolation)
            bench = Self.bench()
            bench.open()
            let bound = bench.receive {
                $0.bind.bindNumber = 2
                $0.bind.userID = "u"
                $0.bind.parameters = list
            }
            #expect(bound.closeCode == .protocolViolation)
        }
        var bench = Self.bench()
        bench.open { $0.parameters = Array(many.dropLast()) }
        #expect(bench.machine.identity?.subscriptions.parameters.count == 64)
    }

    // MARK: Stored parameters

    private static func sendParameters(
        _ parameters: [Mss_Device_V1_Parameter], number: UInt32 = 1, bind: UInt32 = 1, on bench: inout Bench
    ) -> [SessionAction] {
        bench.receive {
            $0.keepParameters.number = number
            $0.keepParameters.bindNumber = bind
            $0.keepParameters.parameters = parameters
        }
    }

    @Test("values for the user go to the store, are answered after the commit, and register the session again")
    func keeping() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        let asked = Self.sendParameters([Self.parameter("3")], on: &bench)
        #expect(asked.kept.map(\.parameters.first?.value) == [.number(3)] && asked.keptAnswers.isEmpty)
        let kept = bench.handle(.parametersKept(true, number: 1))
        #expect(kept.keptAnswers.map(\.refusal) == [.none] && kept.opens == 1)
        var reply = Self.reply(head: 0, [(0, 3)])
        reply.userParameters = [DeviceParameter(bizType: BizType("B"), name: "from", value: .number(3)).bus]
        let told = Self.registered(reply, on: &bench)
        #expect(told.userParameters.map { $0.parameters.map(\.value) } == [["3.0"]])
        _ = bench.handle(.registrationDue)
        #expect(Self.registered(reply, on: &bench).userParameters.isEmpty, "told once")
        #expect(
            Self.sendParameters([Self.parameter("")], number: 2, on: &bench).kept.map(\.parameters.first?.value) == [
                nil
            ])
        let failed = bench.handle(.parametersKept(false, number: 2))
        #expect(failed.keptAnswers.map(\.refusal) == [.tryAgain] && failed.opens == 0)
    }

    @Test("undeclared, mistyped, doubled and unbound parameters are refused; the order is kept")
    func refusals() {
        func refusal(_ parameters: [Mss_Device_V1_Parameter], bind: UInt32 = 1) -> Mss_Device_V1_RequestRefusal? {
            var bench = Self.bench()
            bench.connect()
            _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
            let answer = Self.sendParameters(parameters, bind: bind, on: &bench)
            return answer.kept.isEmpty ? answer.keptAnswers.first?.refusal : nil
        }
        #expect(refusal([Self.parameter("1")]) == nil)
        #expect(refusal([]) == .invalid && refusal([Self.parameter("1", "to")]) == .invalid)
        #expect(refusal([Self.parameter("\"1\"")]) == .invalid && refusal([Self.parameter("x")]) == .invalid)
        #expect(refusal([Self.parameter("1"), Self.parameter("2")]) == .invalid)
        #expect(refusal([Self.parameter("1", of: "C")]) == .invalid)
        #expect(refusal([Self.parameter("1")], bind: 2) == .tryAgain)
        var bench = Self.bench()
        bench.open()
        _ = Self.sendParameters([Self.parameter("1")], on: &bench)
        #expect(Self.sendParameters([Self.parameter("1")], number: 2, on: &bench).closeCode == .protocolViolation)
        bench = Self.bench()
        bench.open()
        #expect(Self.sendParameters([Self.parameter("1")], number: 0, on: &bench).closeCode == .protocolViolation)
    }

    @Test("the reply to a refused change carries the user's values") func refused() {
        var bench = Self.bench()
        bench.connect()
        var reply = Self.reply(head: 0, [(0, 0)])
        reply.refusedFilters = ["B"]
        #expect(Self.registered(reply, on: &bench).userParameters.map(\.refusedBizTypes) == [["B"]])
    }

    @Test("a re-read of newly matching oplogs has a mark") func newlyMatching() {
        var bench = Self.bench()
        bench.connect()
        var reply = Self.reply(head: 2, point: 2, [(0, 0)])
        reply.rereads = [
            .with {
                $0.rereadID = 8
                $0.channelID = 3
                $0.oplog = Bench.oplog(1).bus
                $0.newlyMatching = true
            }
        ]
        let opened = Self.registered(reply, on: &bench)
        #expect(opened.batches.map(\.newlyMatching) == [true] && opened.batches.map(\.reread) == [8])
    }
}
