import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

/// A filtered business type: what goes out by which filter, and what waits while a registration is under way.
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

    /// The answer to a registration: (end or 0, filter) of B.
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

    /// A notice whose oplogs have their ids as n.
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
        bench.machine.registered(reply, bindNumber: 1, in: bench.world)
    }

    @Test("each oplog goes by the filter that was in force when it was appended; what does not pass moves the position")
    func segments() {
        var bench = Self.bench()
        bench.connect { $0.parameters = [Self.parameter("7")] }
        let opened = Self.registered(Self.reply(head: 4, [(4, 2), (0, 7)]), on: &bench)
        #expect(opened.fetches.map(\.after) == [0])
        var page = Bench.page(after: 0, ids: [1, 2, 3, 4])
        for place in page.entries.indices { page.entries[place].attributes = "{\"n\":\(page.entries[place].id)}" }
        let first = bench.machine.fetched(page, channelID: 3, in: bench.world)
        #expect(first.pushed == [2, 3, 4])
        let next = bench.machine.noticed(Self.notice(after: 4, ids: [5, 6, 7]), in: bench.world)
        #expect(next.pushed == [7] && next.batches.map(\.after) == [4] && next.batches.map(\.upto) == [7])
        #expect(bench.machine.noticed(Self.notice(after: 7, ids: [8]), in: bench.world).pushed == [8])
    }

    @Test("a filtered channel whose oplogs say nothing of themselves gets none; tombstones pass whatever the filter")
    func without() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        let notice = Bench.notice("B", channel: 3, after: 0, ids: [1])
        #expect(bench.machine.noticed(notice, in: bench.world).pushed.isEmpty)
        var mark = Bench.oplog(2)
        mark.recalls = OplogID(1)
        // The device has what is recalled only where it was sent something.
        bench.machine.write(bench.machine.noticed(Self.notice(after: 1, ids: [2, 3]), in: bench.world))
        mark.id = OplogID(4)
        mark.recalls = OplogID(3)
        let recall = ChannelNotice(
            channelID: 3, address: notice.address, after: OplogID(3), upto: OplogID(4), entries: [mark])
        #expect(bench.machine.noticed(recall, in: bench.world).pushed == [4])
    }

    @Test("a changed value registers at once, and until the answer nothing of the channel is read or sent; then by it")
    func changeHolds() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        let changed = Self.set("3", on: &bench)
        #expect(changed.opens == 1 && changed.announced.map(\.parameters.count) == [1])
        #expect(changed.announced.map(\.filtered) == [[BizType("B")]])
        // Both came behind the change in the store.
        #expect(bench.machine.noticed(Self.notice(after: 0, ids: [1, 2]), in: bench.world).pushed.isEmpty)
        #expect(bench.machine.noticed(Self.notice(after: 2, ids: [3]), in: bench.world).pushed.isEmpty)
        #expect(
            bench.machine.noticed(Bench.notice("C", channel: 4, after: 0, ids: [1]), in: bench.world).pushed == [1],
            "an unfiltered one goes on")
        let answered = Self.registered(Self.reply(head: 3, [(0, 3)]), on: &bench)
        #expect(answered.fetches.map(\.after) == [0])
        var page = Bench.page(after: 0, ids: [1, 2, 3])
        for place in page.entries.indices { page.entries[place].attributes = "{\"n\":\(page.entries[place].id)}" }
        #expect(bench.machine.fetched(page, channelID: 3, in: bench.world).pushed == [3])
        #expect(Self.set("3", on: &bench).isEmpty, "the same list")
    }

    @Test("a page that was asked for before the change is not used, and what exists nowhere else is kept")
    func pageUnderWay() {
        var bench = Self.bench()
        bench.connect()
        let opened = Self.registered(Self.reply(head: 2, [(0, 0)]), on: &bench)
        #expect(opened.fetches.count == 1)
        _ = Self.set("2", on: &bench)
        var page = Bench.page(after: 0, ids: [1, 2])
        for place in page.entries.indices { page.entries[place].attributes = "{\"n\":\(page.entries[place].id)}" }
        #expect(bench.machine.fetched(page, channelID: 3, in: bench.world).pushed.isEmpty)
        let live = Self.notice(after: 2, ids: [3], persistent: false)
        _ = bench.machine.noticed(live, in: bench.world)
        #expect(bench.machine.taken(of: live, in: bench.world).held == [3])
        let answered = Self.registered(Self.reply(head: 3, [(2, 0), (0, 2)]), on: &bench)
        #expect(answered.fetches.map(\.after) == [0])
        page.upto = 3
        #expect(bench.machine.fetched(page, channelID: 3, in: bench.world).pushed == [1, 2, 3])
    }

    @Test("a registration that fails keeps the channel waiting, and is repeated; two changes end with the last one")
    func failure() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        #expect(Self.set("3", on: &bench).opens == 1)
        #expect(Self.set("4", on: &bench).opens == 0, "one at a time")
        _ = bench.machine.registrationFailed(in: bench.world)
        #expect(bench.machine.noticed(Self.notice(after: 0, ids: [9]), in: bench.world).pushed.isEmpty)
        bench.now += .seconds(1)
        let again = bench.machine.ticked(in: bench.world)
        #expect(again.announced.map { $0.parameters.map(\.value) } == [[.number(4)]])
        #expect(Self.set("5", on: &bench).opens == 0)
        let answered = Self.registered(Self.reply(head: 9, [(0, 4)]), on: &bench)
        #expect(answered.announced.map { $0.parameters.map(\.value) } == [[.number(5)]])
    }

    @Test("a configuration that gets a filter, or another one, has the session register; nothing goes out before")
    func configurationChanges() {
        var bench = Self.bench()
        let filtered = bench.configurations[BizType("B")]
        bench.configurations[BizType("B")] = Bench.configuration("B")
        bench.open([("B", 3, 0, 0)])
        #expect(bench.machine.noticed(Self.notice(after: 0, ids: [1]), in: bench.world).pushed == [1])
        bench.configurations[BizType("B")] = filtered
        #expect(bench.machine.noticed(Self.notice(after: 1, ids: [2]), in: bench.world).pushed.isEmpty)
        #expect(bench.machine.surroundingsChanged(in: bench.world).opens + (bench.machine.isRegistering ? 1 : 0) >= 1)
        let again = Self.registered(Self.reply(head: 2, [(2, 0), (0, 9)]), on: &bench)
        #expect(again.opens == 1, "the rules changed while the store was asked")
        _ = Self.registered(Self.reply(head: 2, [(2, 0), (0, 9)]), on: &bench)
        #expect(bench.machine.surroundingsChanged(in: bench.world).opens == 0)
        bench.configurations[BizType("B")]?.subscription.filter = "n == 1"
        #expect(bench.machine.surroundingsChanged(in: bench.world).opens == 1)
    }

    @Test("a threshold counts what passes: the page is asked for with the filters; history and summary likewise")
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
        // C has no oplog yet.
        #expect(summary.summaryReads.flatMap(\.channels).map(\.filter.text) == [Self.filter(7)])
    }

    @Test("lists that cannot be end the connection: over 64, or a value that is none")
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
        #expect(bench.machine.identity?.parameters.count == 64)
    }

    // MARK: What the user keeps

    private static func keep(
        _ parameters: [Mss_Device_V1_Parameter], number: UInt32 = 1, bind: UInt32 = 1, on bench: inout Bench
    ) -> [SessionAction] {
        bench.receive {
            $0.keepParameters.number = number
            $0.keepParameters.bindNumber = bind
            $0.keepParameters.parameters = parameters
        }
    }

    @Test("values for the user go to the store, are answered once kept, and the session registers anew")
    func keeping() {
        var bench = Self.bench()
        bench.connect()
        _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
        let asked = Self.keep([Self.parameter("3")], on: &bench)
        #expect(asked.kept.map(\.parameters.first?.value) == [.number(3)] && asked.keptAnswers.isEmpty)
        let kept = bench.machine.parametersKept(true, number: 1, in: bench.world)
        #expect(kept.keptAnswers.map(\.refusal) == [.none] && kept.opens == 1)
        var reply = Self.reply(head: 0, [(0, 3)])
        reply.userParameters = [DeviceParameter(bizType: BizType("B"), name: "from", value: .number(3)).bus]
        let told = Self.registered(reply, on: &bench)
        #expect(told.userParameters.map { $0.parameters.map(\.value) } == [["3.0"]])
        _ = bench.machine.announce(in: bench.world)
        #expect(Self.registered(reply, on: &bench).userParameters.isEmpty, "told once")
        #expect(Self.keep([Self.parameter("")], number: 2, on: &bench).kept.map(\.parameters.first?.value) == [nil])
        let failed = bench.machine.parametersKept(false, number: 2, in: bench.world)
        #expect(failed.keptAnswers.map(\.refusal) == [.tryAgain] && failed.opens == 0)
    }

    @Test("what is not declared, of another type, twice, of another bind or of nobody is refused; order is kept")
    func refusals() {
        func refusal(_ parameters: [Mss_Device_V1_Parameter], bind: UInt32 = 1) -> Mss_Device_V1_RequestRefusal? {
            var bench = Self.bench()
            bench.connect()
            _ = Self.registered(Self.reply(head: 0, [(0, 0)]), on: &bench)
            let answer = Self.keep(parameters, bind: bind, on: &bench)
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
        _ = Self.keep([Self.parameter("1")], on: &bench)
        #expect(Self.keep([Self.parameter("1")], number: 2, on: &bench).closeCode == .protocolViolation)
        bench = Self.bench()
        bench.open()
        #expect(Self.keep([Self.parameter("1")], number: 0, on: &bench).closeCode == .protocolViolation)
    }

    @Test("a filter whose change was refused is told with the user's values") func refused() {
        var bench = Self.bench()
        bench.connect()
        var reply = Self.reply(head: 0, [(0, 0)])
        reply.refusedFilters = ["B"]
        #expect(Self.registered(reply, on: &bench).userParameters.map(\.refusedBizTypes) == [["B"]])
    }

    @Test("a re-read of what newly matches says so") func newlyMatching() {
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
