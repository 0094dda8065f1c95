import BusMessages
import DeliveryHistory
import SyncModel
import Testing

@testable import Gateway

/// Data that is stored nowhere and whose notices overtake each other (spec H4, finding A10).
@Suite("H4: live data of two writers") struct SessionLiveTests {
    private typealias Bench = SessionBench

    private static func live(after: Int64, _ ids: Int64...) -> ChannelNotice {
        Bench.notice("B", channel: 3, after: after, ids: ids, persistent: false)
    }

    @Test("the second notice comes first: the session waits for the first one, and hands both out in order")
    func overtaken() {
        var bench = Bench()
        bench.open([("B", 3, 4, 4)])
        let second = Self.live(after: 5, 6)
        #expect(bench.machine.noticed(second, in: bench.world).fetches.map(\.after) == [4])
        #expect(bench.machine.taken(of: second, in: bench.world) == TakenEntries(held: [6]))
        let page = Bench.page(after: 4, ids: [], upto: 6, awaited: [5, 6])
        #expect(bench.machine.fetched(page, channelID: 3, in: bench.world).pushed.isEmpty)
        let first = Self.live(after: 4, 5)
        let actions = bench.machine.noticed(first, in: bench.world)
        #expect(bench.machine.taken(of: first, in: bench.world) == TakenEntries(held: [5]))
        #expect(actions.pushed == [5] && actions.fetches.map(\.after) == [5], "it reads on at once")
        let rest = Bench.page(after: 5, ids: [], upto: 6, awaited: [6])
        #expect(bench.machine.fetched(rest, channelID: 3, in: bench.world).pushed == [6])
    }

    @Test("stored entries before the missing one go out meanwhile") func partOfPage() {
        var bench = Bench()
        bench.open([("B", 3, 9, 4)])
        let page = Bench.page(after: 4, ids: [5, 6, 8, 9], awaited: [7])
        let actions = bench.machine.fetched(page, channelID: 3, in: bench.world)
        #expect(actions.pushed == [5, 6] && actions.fetches.map(\.after) == [6])
        let again = Bench.page(after: 6, ids: [8, 9], awaited: [7])
        #expect(bench.machine.fetched(again, channelID: 3, in: bench.world).fetches.isEmpty, "no loop")
        bench.now += .seconds(1)
        #expect(bench.machine.ticked(in: bench.world).fetches.map(\.after) == [6])
        #expect(
            bench.machine.fetched(Bench.page(after: 6, ids: [8, 9]), channelID: 3, in: bench.world).pushed == [8, 9],
            "the store does not name it any more")
    }

    @Test("a notice whose id the session has gone past is missed, not refused by an offline device") func passed() {
        var bench = Bench()
        bench.open([("B", 3, 4, 4)])
        _ = bench.machine.noticed(Self.live(after: 5, 6), in: bench.world)
        _ = bench.machine.fetched(Bench.page(after: 4, ids: [], upto: 6), channelID: 3, in: bench.world)
        let late = Self.live(after: 4, 5)
        #expect(bench.machine.noticed(late, in: bench.world).pushed.isEmpty)
        #expect(bench.machine.taken(of: late, in: bench.world) == TakenEntries(missed: [5]))
        var other = Bench.notice("B", channel: 3, after: 4, ids: [5], owner: "e", persistent: false)
        #expect(bench.machine.taken(of: other, in: bench.world) == TakenEntries(), "it is for another device")
        other = Bench.notice(
            "B", channel: 3, after: 4, ids: [5], targeting: Targeting(operatingSystem: .iOS), persistent: false)
        #expect(bench.machine.taken(of: other, in: bench.world) == TakenEntries(), "it is not for this system")
        bench.wallTime = WallTime(milliseconds: 2_000)
        #expect(bench.machine.taken(of: late, in: bench.world) == TakenEntries(), "its validity has ended")
    }

    @Test("a repeat of what this session has sent is taken") func repeated() {
        var bench = Bench()
        bench.open([("B", 3, 4, 4)])
        #expect(bench.machine.noticed(Self.live(after: 4, 5), in: bench.world).pushed == [5])
        let again = ChannelNotice(
            channelID: 3, address: ChannelAddress(target: Bench.target, bizType: BizType("B")), after: OplogID(5),
            upto: OplogID(6), entries: [Bench.oplog(5, persistent: false)])
        #expect(bench.machine.noticed(again, in: bench.world).pushed.isEmpty)
        #expect(bench.machine.taken(of: again, in: bench.world) == TakenEntries(held: [5]))
    }

    @Test("a session that is being registered, has no lease, or has no room does not pass for an offline device")
    func notOffline() {
        var bench = Bench()
        bench.connect()
        let early = Self.live(after: 4, 5)
        _ = bench.machine.noticed(early, in: bench.world)
        #expect(bench.machine.taken(of: early, in: bench.world) == TakenEntries(missed: [5]))
        bench = Bench()
        bench.open([("B", 3, 4, 4)])
        bench.holdsLease = false
        _ = bench.machine.noticed(early, in: bench.world)
        #expect(bench.machine.taken(of: early, in: bench.world) == TakenEntries(missed: [5]))
        bench = Bench()
        bench.open([("B", 3, 4, 4)])
        for id: Int64 in 10..<80 { _ = bench.machine.noticed(Self.live(after: id - 1, id), in: bench.world) }
        #expect(bench.machine.taken(of: Self.live(after: 78, 79), in: bench.world) == TakenEntries(missed: [79]))
    }
}
