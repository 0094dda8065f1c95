import BusMessages
import PostgreSQL
import SyncModel
import SyncStore
import Testing

@testable import StatisticsAggregator

@Suite("Folding facts")
struct StatisticsFoldTests {
    private let target = TargetAddress(instanceID: InstanceID("a"), kind: .user, target: "u")

    private func fact(_ at: Int64, channel: Int64 = 1, _ set: (inout Mss_Bus_V1_Fact) -> Void) -> Mss_Bus_V1_Fact {
        var fact = Mss_Bus_V1_Fact()
        fact.atMs = at
        fact.channelID = channel
        set(&fact)
        return fact
    }

    private var facts: [Mss_Bus_V1_Fact] {
        [
            fact(10) {
                $0.accepted.target = target.bus
                $0.accepted.bizType = "B"
                $0.accepted.oplogID = 7
            },
            fact(20) {
                $0.handedOut.deviceID = "d1"
                $0.handedOut.oplogIds = [7, 8]
            },
            fact(15) {
                $0.handedOut.deviceID = "d2"
                $0.handedOut.oplogIds = [8]
            },
            fact(30) {
                $0.confirmed.deviceID = "d1"
                $0.confirmed.oplogIds = [7]
            },
            fact(31) {
                $0.confirmed.deviceID = "d2"
                $0.confirmed.oplogIds = [7]
            },
            fact(25) {
                $0.stored.deviceID = "d1"
                $0.stored.upto = 8
            },
            fact(26) {
                $0.stored.deviceID = "d1"
                $0.stored.upto = 7
            },
            fact(27) {
                $0.stored.deviceID = "d1"
                $0.stored.upto = 8
            },
        ]
    }

    private func folded(_ facts: [Mss_Bus_V1_Fact]) -> StatisticsFold {
        var fold = StatisticsFold()
        for fact in facts { fold.add(fact) }
        return fold
    }

    @Test("the earliest of each kind and the furthest stored count")
    func merged() {
        let fold = folded(facts)
        let key = StatisticsBatch.OplogKey(channelID: 1, oplogID: OplogID(7))
        let moments = fold.batch.oplogs[key]
        #expect(moments?.accepted?.milliseconds == 10)
        #expect(moments?.handedOut?.milliseconds == 20)
        #expect(moments?.confirmed?.milliseconds == 30)
        let other = StatisticsBatch.OplogKey(channelID: 1, oplogID: OplogID(8))
        #expect(fold.batch.oplogs[other]?.handedOut?.milliseconds == 15)
        #expect(fold.batch.oplogs[other]?.accepted == nil)
        let progress = fold.batch.stored[.init(channelID: 1, deviceID: DeviceID("d1"))]
        #expect(progress?.upto == OplogID(8))
        #expect(progress?.at.milliseconds == 25)
        #expect(fold.batch.addresses == [1: ChannelAddress(target: target, bizType: BizType("B"))])
        #expect(fold.newest?.milliseconds == 31)
    }

    @Test("order and repetition make no difference")
    func idempotent() {
        let expected = folded(facts).batch
        #expect(folded(facts.reversed()).batch == expected)
        #expect(folded(facts + facts).batch == expected)
        for _ in 0..<50 { #expect(folded((facts + facts).shuffled()).batch == expected) }
    }

    @Test("facts that this build does not know are counted and change nothing")
    func unknown() {
        let unknownKind = fact(99) {
            $0.accepted.target = target.bus
            $0.accepted.target.kind = .UNRECOGNIZED(9)
        }
        let fold = folded([fact(98) { _ in }, unknownKind])
        #expect(fold.batch.isEmpty)
        #expect(fold.unknownFacts == 2)
        #expect(fold.newest == nil)
    }

    @Test("transactions take whole bodies, in order, up to 2,000 rows")
    func groups() {
        #expect(FactGroups.cut([Int](), size: { $0 }) == [])
        #expect(FactGroups.cut([1_000, 1_000, 1], size: { $0 }) == [[1_000, 1_000], [1]])
        #expect(FactGroups.cut([1, 9_000, 1, 1_999], size: { $0 }) == [[1], [9_000], [1, 1_999]])
        #expect(FactGroups.rows(of: facts) == 9)
        for _ in 0..<100 {
            let sizes = (0..<Int.random(in: 0..<40)).map { _ in Int.random(in: 0...2_400) }
            let groups = FactGroups.cut(sizes, size: { $0 })
            #expect(groups.flatMap(\.self) == sizes)
            #expect(groups.allSatisfy { $0.count == 1 || $0.reduce(0, +) <= FactGroups.rowsMax })
        }
    }

    @Test("pauses double up to five seconds, and start over after a success")
    func pauses() {
        var pauses = RetryPauses()
        let grown = (0..<8).map { _ in pauses.next(random: 1) }
        #expect(grown.first == .milliseconds(100))
        #expect(grown[1] == .milliseconds(200))
        #expect(grown.last == .seconds(5))
        pauses.reset()
        let again = pauses.next(random: 0)
        #expect(again == .milliseconds(50))
    }

    @Test(
        "a body with a fact of an impossible time is set aside, whatever else it says",
        arguments: [Int64.min, -1, .max])
    func impossibleTimes(at: Int64) throws {
        let fact = fact(at) { $0.handedOut.deviceID = "d" }
        #expect(throws: RejectedBody.self) { try StatisticsFold.facts(of: Mss_Bus_V1_Facts.body(facts + [fact])) }
        #expect(try StatisticsFold.facts(of: Mss_Bus_V1_Facts.body(facts)) == facts)
    }

    @Test(
        "what the database refuses for what it says is set aside; all else waits",
        arguments: [
            ("22021", true), ("23514", true), ("54000", true), ("40001", false), ("53300", false), ("57P01", false),
            ("42501", false),
        ])
    func blame(sqlState: String, isBlamed: Bool) {
        let error = PostgresError(code: .server(sqlState: sqlState), message: "", mayRetry: false)
        #expect(error.blamesTheData == isBlamed)
        #expect(!PostgresError(code: .unavailable, message: "", mayRetry: true).blamesTheData)
    }
}
