import BusMessages
import DeliveryHistory
import SyncModel
import Testing

@testable import Gateway

/// Non-persistent pushes whose notices overtake each other (H4).
@Suite("H4: non-persistent pushes of two writers") struct SessionLiveTests {
    private typealias Bench = SessionBench

    private static func live(after: Int64, _ ids: Int64...) -> ChannelNotice {
        Bench.notice("B", channel: 3, after: after, ids: ids, persistent: false)
    }

    @Test("the second notice arrives first: the session waits for the first one, and sends both in order")
    func overtaken() {
        var bench = Bench()
        bench.open([("B", 3, 4, 4)])
        let second = Self.live(after: 5, 6)
        #expect(bench.handle(.noticed(second)).fetches.map(\.after) == [4])
        #expect(bench.replyEntries(of: second) == NoticeReplyEntries(held: [6]))
        let page = Bench.page(after: 4, ids: [], upto: 6, awaited: [5, 6])
        #expect(bench.handle(.fetched(page, channelID: 3)).pushed.isEmpty)
        let first = Self.live(after: 4, 5)
        let actions = bench.handle(.noticed(first))
        #expect(bench.replyEntries(of: first) == NoticeReplyEntries(held: [5]))
        #expect(actions.pushed == [5] && actions.fetches.map(\.after) == [5], "it reads on at once")
        let rest = Bench.page(after: 5, ids: [], upto: 6, awaited: [6])
        #expect(bench.handle(.fetched(rest, channelID: 3)).pushed == [6])
    }

    @Test("stored entries before the missing one are sent meanwhile") func partOfPage() {
        var bench = Bench()
        bench.open([("B", 3, 9, 4)])
        let page = Bench.page(after: 4, ids: [5, 6, 8, 9], awaited: [7])
        let actions = bench.handle(.fetched(page, channelID: 3))
        #expect(actions.pushed == [5, 6] && actions.fetches.map(\.after) == [6])
        let again = Bench.page(after: 6, ids: [8, 9], awaited: [7])
        #expect(bench.handle(.fetched(again, channelID: 3)).fetches.isEmpty, "no loop")
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).fetches.map(\.after) == [6])
        #expect(
            bench.handle(.fetched(Bench.page(after: 6, ids: [8, 9]), channelID: 3)).pushed == [8, 9],
            "the store does not name it any more")
    }

    @Test("a notice below the cursor counts as missed, not as refused by an offline device") func passed() {
        var bench = Bench()
        bench.open([("B", 3, 4, 4)])
        _ = bench.handle(.noticed(Self.live(after: 5, 6)))
        _ = bench.handle(.fetched(Bench.page(after: 4, ids: [], upto: 6), channelID: 3))
        let late = Self.live(after: 4, 5)
        #expect(bench.handle(.noticed(late)).pushed.isEmpty)
        #expect(bench.replyEntries(of: late) == NoticeReplyEntries(missed: [5]))
        var other = Bench.notice("B", channel: 3, after: 4, ids: [5], owner: "e", persistent: false)
        #expect(bench.replyEntries(of: other) == NoticeReplyEntries(), "it is for another device")
        other = Bench.notice(
            "B", channel: 3, after: 4, ids: [5], targeting: Targeting(operatingSystem: .iOS), persistent: false)
        #expect(bench.replyEntries(of: other) == NoticeReplyEntries(), "it is not for this system")
        bench.wallTime = WallTime(milliseconds: 2_000)
        #expect(bench.replyEntries(of: late) == NoticeReplyEntries(), "its validity has ended")
    }

    @Test("a repeat of a sent push counts as sent") func repeated() {
        var bench = Bench()
        bench.open([("B", 3, 4, 4)])
        #expect(bench.handle(.noticed(Self.live(after: 4, 5))).pushed == [5])
        let again = ChannelNotice(
            channelID: 3, address: ChannelAddress(target: Bench.target, bizType: BizType("B")), after: OplogID(5),
            upto: OplogID(6), entries: [Bench.oplog(5, persistent: false)])
        #expect(bench.handle(.noticed(again)).pushed.isEmpty)
        #expect(bench.replyEntries(of: again) == NoticeReplyEntries(held: [5]))
    }

    @Test("a session without registration, lease or free capacity does not count as an offline device")
    func notOffline() {
        var bench = Bench()
        bench.connect()
        let early = Self.live(after: 4, 5)
        _ = bench.handle(.noticed(early))
        #expect(bench.replyEntries(of: early) == NoticeReplyEntries(missed: [5]))
        bench = Bench()
        bench.open([("B", 3, 4, 4)])
        bench.holdsLease = false
        _ = bench.handle(.noticed(early))
        #expect(bench.replyEntries(of: early) == NoticeReplyEntries(missed: [5]))
        bench = Bench()
        bench.open([("B", 3, 4, 4)])
        for id: Int64 in 10..<80 { _ = bench.handle(.noticed(Self.live(after: id - 1, id))) }
        #expect(
            bench.replyEntries(of: Self.live(after: 78, 79)) == NoticeReplyEntries(missed: [79]))
    }
}
