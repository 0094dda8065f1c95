import BusMessages
import PostgreSQL
import SyncModel
import SyncStore
import Testing

@testable import StatisticsAggregator

@Suite("Folding facts")
struct StatisticsFoldTests {
    private func fact(_ at: Int64, channel: Int64 = 1, _ set: (inout Mss_Bus_V1_Fact) -> Void) -> Mss_Bus_V1_Fact {
        var fact = Mss_Bus_V1_Fact()
        fact.atMs = at
        fact.channelID = channel
        set(&fact)
        return fact
    }

    private var facts: [Mss_Bus_V1_Fact] {
        [
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
            fact(14) {
                $0.handedOut.deviceID = "d1"
                $0.handedOut.oplogIds = [8]
                $0.handedOut.operatingSystem = .android
                $0.handedOut.appVersion = "2.0"
                $0.handedOut.userID = "u1"
            },
            fact(60_025, channel: 0) {
                $0.connected.gatewayID = "g"
                $0.connected.instanceID = "a"
                $0.connected.devices = 3
            },
            fact(60_000, channel: 0) {
                $0.connected.gatewayID = "g"
                $0.connected.instanceID = "a"
                $0.connected.devices = 4
            },
        ]
    }

    private func folded(_ facts: [Mss_Bus_V1_Fact]) -> StatisticsFold {
        var fold = StatisticsFold()
        for fact in facts { fold.add(fact) }
        return fold
    }

    @Test("the earliest of each kind counts, with the device's traits at the first hand-out")
    func merged() {
        let fold = folded(facts)
        let key = StatisticsBatch.OplogKey(channelID: 1, oplogID: OplogID(7))
        let moments = fold.batch.oplogs[key]
        #expect(moments?.handedOut?.milliseconds == 20)
        #expect(moments?.confirmed?.milliseconds == 30)
        let other = StatisticsBatch.OplogKey(channelID: 1, oplogID: OplogID(8))
        #expect(fold.batch.oplogs[other]?.handedOut?.milliseconds == 14)
        #expect(fold.batch.oplogs[other]?.noted.milliseconds == 14)
        let first = fold.batch.deliveries[.init(other, DeviceID("d1"))]?.handedOut
        #expect(
            first
                == StatisticsBatch.HandOut(
                    at: WallTime(milliseconds: 14), operatingSystem: .android, appVersion: "2.0", user: "u1"))
        #expect(fold.batch.connected.map(\.value) == [4])
        #expect(fold.batch.connected.first?.key.minute.milliseconds == 60_000)
        #expect(fold.batch.channels == [1])
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
        let unknownReason = fact(99) {
            $0.skipped.oplogIds = [1]
            $0.skipped.reason = .UNRECOGNIZED(9)
        }
        let fold = folded([fact(98) { _ in }, unknownReason])
        #expect(fold.batch.isEmpty)
        #expect(fold.unknownFacts == 2)
        #expect(fold.newest == nil)
    }

    @Test("parts have every oplog with all that is known of it, in one part each", arguments: [1, 7, 300])
    func parts(size: Int) {
        var fold = StatisticsFold()
        for number in 1...1_000 {
            // One channel has half of the facts.
            let channel = Int64(number % 2 == 0 ? 5 : number)
            fold.add(
                fact(Int64(number), channel: channel) {
                    $0.handedOut.deviceID = "d"
                    $0.handedOut.oplogIds = [Int64(number)]
                })
            fold.add(
                fact(Int64(number), channel: channel) {
                    $0.confirmed.deviceID = "d"
                    $0.confirmed.oplogIds = [Int64(number)]
                })
        }
        let parts = fold.batch.parts(ofRows: size)
        #expect(parts.map(\.oplogs.count).reduce(0, +) == 1_000 && parts.map(\.deliveries.count).reduce(0, +) == 1_000)
        #expect(parts.allSatisfy { part in part.deliveries.keys.allSatisfy { part.oplogs[$0.oplog] != nil } })
        for part in parts {
            #expect(part.oplogs.count <= 3 * size, "no part is much larger than asked")
            for (key, moments) in part.oplogs { #expect(moments == fold.batch.oplogs[key]) }
        }
    }

    @Test("an oplog for very many devices is in several parts, with each delivery once")
    func partsOfBroadcast() {
        var fold = StatisticsFold()
        for device in 1...2_000 {
            fold.add(
                fact(Int64(device), channel: 5) {
                    $0.handedOut.deviceID = "d\(device)"
                    $0.handedOut.oplogIds = [1, 2]
                })
        }
        let parts = fold.batch.parts(ofRows: 300)
        #expect(parts.map(\.deliveries.count).reduce(0, +) == 4_000)
        #expect(Set(parts.flatMap(\.deliveries.keys)) == Set(fold.batch.deliveries.keys))
        for part in parts {
            #expect((100...900).contains(part.deliveries.count), "parts are of about one size")
            #expect(part.deliveries.keys.allSatisfy { part.oplogs[$0.oplog] == fold.batch.oplogs[$0.oplog] })
        }
    }

    @Test("S3: figures are up to now while nothing waits, and as far as the newest folded fact while something does")
    func progress() {
        func time(_ seconds: Int64) -> WallTime { WallTime(milliseconds: seconds * 1_000) }
        var progress = FoldProgress()
        #expect(progress.lag(at: time(100)) == nil)
        progress.read(upto: time(100))
        // A broker that has just reconnected can have more facts.
        progress.checked(isIdle: true, at: time(100))
        #expect(progress.upto == nil)
        progress.folded(newest: time(40))
        progress.checked(isIdle: false, at: time(102))
        #expect(progress.lag(at: time(102)) == 62)
        progress.folded(newest: nil)
        progress.checked(isIdle: true, at: time(104))
        progress.checked(isIdle: true, at: time(106))
        progress.read(upto: time(106))
        #expect(progress.lag(at: time(106)) == 0)
        // Without new facts, the aggregator is not behind.
        progress.checked(isIdle: true, at: time(1_000))
        progress.read(upto: time(1_000))
        #expect(progress.lag(at: time(1_000)) == 0)
        // The broker or the database is unavailable, so waiting facts are possible.
        progress.checked(isIdle: false, at: time(1_060))
        progress.read(upto: time(1_060))
        #expect(progress.lag(at: time(1_060)) == 60)
    }

    @Test("S3: figures end where stored pushes are counted, with any facts")
    func accepted() {
        func time(_ seconds: Int64) -> WallTime { WallTime(milliseconds: seconds * 1_000) }
        var progress = FoldProgress()
        progress.folded(newest: time(100))
        #expect(progress.upto == nil, "nothing is known of stored pushes")
        progress.read(upto: time(70))
        #expect(progress.upto == time(70))
        progress.read(upto: time(130))
        #expect(progress.upto == time(100))
    }

    @Test("transactions take whole bodies, in order, up to 24,000 rows")
    func groups() {
        #expect(FactGroups.cut([Int](), size: { $0 }) == [])
        #expect(FactGroups.cut([12_000, 12_000, 1], size: { $0 }) == [[12_000, 12_000], [1]])
        #expect(FactGroups.cut([1, 30_000, 1, 23_999], size: { $0 }) == [[1], [30_000], [1, 23_999]])
        #expect(FactGroups.rows(of: facts) == 8)
        for _ in 0..<100 {
            let sizes = (0..<Int.random(in: 0..<40)).map { _ in Int.random(in: 0...28_800) }
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
        "a body with a fact of an impossible time is rejected, with any other content",
        arguments: [Int64.min, -1, .max])
    func impossibleTimes(at: Int64) throws {
        let fact = fact(at) { $0.handedOut.deviceID = "d" }
        #expect(throws: RejectedBody.self) { try StatisticsFold.facts(of: Mss_Bus_V1_Facts.body(facts + [fact])) }
        #expect(try StatisticsFold.facts(of: Mss_Bus_V1_Facts.body(facts)) == facts)
    }

    @Test(
        "a body whose values the database refuses is rejected; all others wait",
        arguments: [
            ("22021", true), ("23514", true), ("54000", true), ("40001", false), ("53300", false), ("57P01", false),
            ("42501", false),
        ])
    func blame(sqlState: String, isBlamed: Bool) {
        let error = PostgresError(code: .server(sqlState: sqlState), message: "", mayRetry: false)
        #expect((error.batchRemedy == .halve) == isBlamed)
        #expect(PostgresError(code: .unavailable, message: "", mayRetry: true).batchRemedy == .fail)
    }
}
