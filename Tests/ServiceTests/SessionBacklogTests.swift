import BusMessages
import DeliveryHistory
import DeviceProtocol
import SyncModel
import Testing

@testable import Gateway

/// What a threshold may discard: only what was there when the session opened (spec D10, finding A6).
@Suite("D10: a threshold and what comes behind the opening") struct SessionBacklogTests {
    private typealias Bench = SessionBench

    private static let threshold = Bench.configuration("B", repush: .threshold(10))

    @Test("the page names the head of the opening, however late it is read: a failed page, pushes meanwhile, no lease")
    func latePage() {
        var bench = Bench([Self.threshold])
        #expect(bench.open([("B", 3, 100, 0)]).backlogEnds == [100])
        _ = bench.machine.fetchFailed(channelID: 3, in: bench.world)
        var ends: [Int64] = []
        for id: Int64 in 101...150 {
            let notice = Bench.notice("B", channel: 3, after: id - 1, ids: [id])
            ends += bench.machine.noticed(notice, in: bench.world).backlogEnds
        }
        #expect(ends == [100])
        _ = bench.machine.fetchFailed(channelID: 3, in: bench.world)
        bench.holdsLease = false
        bench.now += .seconds(1)
        #expect(bench.machine.ticked(in: bench.world).fetches.isEmpty)
        bench.holdsLease = true
        let read = bench.machine.surroundingsChanged(in: bench.world)
        #expect(read.backlogEnds == [100] && read.fetches.map(\.newest) == [10])
    }

    @Test("what was not written and is taken back is a backlog up to the same head") func takenBack() {
        var bench = Bench([Self.threshold])
        bench.open([("B", 3, 100, 0)])
        var cursor = ChannelCursor(channelID: 3, head: OplogID(100), recorded: .zero, reported: nil)
        #expect(cursor.openBacklog() == OplogID(100))
        _ = cursor.take(
            upto: OplogID(100), entries: [Bench.oplog(100)], device: bench.machine.identity!.traits,
            now: bench.wallTime)
        cursor.beganBacklog()
        #expect(cursor.openBacklog() == nil)
        cursor.learn(head: OplogID(120))
        _ = cursor.takeBack()
        #expect(cursor.openBacklog() == OplogID(100))
    }

    @Test("a session that becomes eligible has a backlog up to the head of that moment") func becomesEligible() {
        var bench = Bench([Bench.configuration("B", checks: true, repush: .threshold(10))])
        #expect(bench.open([("B", 3, 100, 0)]).fetches.isEmpty)
        _ = bench.machine.noticed(Bench.notice("B", channel: 3, after: 100, ids: Array(101...130)), in: bench.world)
        #expect(bench.answer(.valid).backlogEnds == [130])
    }

    @Test("a channel that began while the session was open is no backlog, also when only an announcement tells of it")
    func channelOfAnOpenSession() {
        var bench = Bench([Self.threshold])
        bench.open()
        _ = bench.machine.announce(in: bench.world)
        let told = bench.machine.registered(Bench.reply([("B", 3, 100, 0)]), bindNumber: 1, in: bench.world)
        #expect(told.fetches.map(\.newest) == [0])
        var early = Bench([Self.threshold])
        early.connect()
        _ = early.machine.noticed(Bench.notice("B", channel: 3, after: 0, ids: Array(1...50)), in: early.world)
        let opened = early.machine.registered(Bench.reply([]), bindNumber: 1, in: early.world)
        #expect(opened.fetches.map(\.newest) == [0], "it was pushed behind the registration")
    }

    @Test("a bind opens the backlog of the user's channels") func bind() {
        var bench = Bench([Self.threshold])
        bench.open([("B", 3, 100, 100)])
        _ = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
            $0.bind.sessionID = "other"
        }
        let told = bench.machine.registered(Bench.reply([("B", 3, 140, 100)]), bindNumber: 2, in: bench.world)
        #expect(told.fetches.map(\.newest) == [10] && told.backlogEnds == [140])
    }
}
