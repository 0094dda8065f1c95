import BusMessages
import DeliveryHistory
import DeviceProtocol
import SyncModel
import Testing

@testable import Gateway

/// A threshold discards only oplogs that existed when the session opened (D10).
@Suite("D10: a threshold and pushes after the opening") struct SessionBacklogTests {
    private typealias Bench = SessionBench

    private static let threshold = Bench.configuration("B", repush: .threshold(10))

    @Test("a late page request still names the head of the opening: after a failure, pushes or a lost lease")
    func latePage() {
        var bench = Bench([Self.threshold])
        #expect(bench.open([("B", 3, 100, 0)]).backlogEnds == [100])
        _ = bench.handle(.fetched(nil, channelID: 3))
        var ends: [Int64] = []
        for id: Int64 in 101...150 {
            let notice = Bench.notice("B", channel: 3, after: id - 1, ids: [id])
            ends += bench.handle(.noticed(notice)).backlogEnds
        }
        #expect(ends == [100])
        _ = bench.handle(.fetched(nil, channelID: 3))
        bench.holdsLease = false
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).fetches.isEmpty)
        bench.holdsLease = true
        let read = bench.handle(.contextChanged)
        #expect(read.backlogEnds == [100] && read.fetches.map(\.newest) == [10])
    }

    @Test("a withdrawn batch is a backlog up to the same head") func takenBack() {
        var bench = Bench([Self.threshold])
        bench.open([("B", 3, 100, 0)])
        var cursor = ChannelCursor(channelID: 3, head: OplogID(100), recorded: .zero, reported: nil)
        #expect(cursor.openBacklog() == OplogID(100))
        _ = cursor.accept(
            upto: OplogID(100), entries: [Bench.oplog(100)], device: bench.machine.identity!.traits,
            now: bench.wallTime)
        cursor.beganBacklog()
        #expect(cursor.openBacklog() == nil)
        cursor.raiseHead(to: OplogID(120))
        _ = cursor.withdraw()
        #expect(cursor.openBacklog() == OplogID(100))
    }

    @Test("a session that becomes eligible has a backlog up to the head of that moment") func becomesEligible() {
        var bench = Bench([Bench.configuration("B", checks: true, repush: .threshold(10))])
        #expect(bench.open([("B", 3, 100, 0)]).fetches.isEmpty)
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 100, ids: Array(101...130))))
        #expect(bench.answer(.valid).backlogEnds == [130])
    }

    @Test("a channel that began in an open session is no backlog, also when a registration reports it first")
    func channelOfAnOpenSession() {
        var bench = Bench([Self.threshold])
        bench.open()
        _ = bench.handle(.registrationDue)
        let told = bench.handle(.registered(Bench.reply([("B", 3, 100, 0)]), bindNumber: 1))
        #expect(told.fetches.map(\.newest) == [0])
        var early = Bench([Self.threshold])
        early.connect()
        _ = early.handle(.noticed(Bench.notice("B", channel: 3, after: 0, ids: Array(1...50))))
        let opened = early.handle(.registered(Bench.reply([]), bindNumber: 1))
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
        let told = bench.handle(.registered(Bench.reply([("B", 3, 140, 100)]), bindNumber: 2))
        #expect(told.fetches.map(\.newest) == [10] && told.backlogEnds == [140])
    }
}
