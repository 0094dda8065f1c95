import BusMessages
import DeliveryHistory
import ServiceKit
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

/// A gateway with a wrong wall clock uses the database time (D11).
@Suite("D11: the database's time on a gateway") struct DatabaseTimeTests {
    @Test("a gateway whose machine is wrong by an hour uses the database's clock", arguments: [-3_600_000, 3_600_000])
    func machineOff(off: Int64) {
        let start = ContinuousClock.now
        let noon = WallTime(milliseconds: 1_800_000_000_000)
        let clock = ProcessClock(now: { start }, wallTime: { noon + .milliseconds(off) })
        let time = SharedDatabaseClock(clock: clock)
        #expect(time.now.milliseconds == 0, "nothing has ended before the first reply")
        time.observe(noon, askedAt: start - .milliseconds(4))
        for seconds in [0, 5, 7_200] {
            let shown = (time.time(at: start + .seconds(seconds))?.milliseconds ?? 0) - noon.milliseconds
            #expect((Int64(seconds) * 1_000...Int64(seconds) * 1_000 + 4).contains(shown))
        }
    }

    @Test("replies and notices without the time are ignored; a notice shows a clock that was set forward")
    func notices() {
        let start = ContinuousClock.now
        let time = SharedDatabaseClock(clock: ProcessClock(now: { start }, wallTime: { WallTime(milliseconds: 5) }))
        time.observe(WallTime(milliseconds: 0), askedAt: start)
        #expect(time.now.milliseconds == 0)
        time.observe(WallTime(milliseconds: 1_000_000), askedAt: start)
        time.observe(Mss_Bus_V1_OplogNotice())
        #expect(abs(time.now.milliseconds - 1_000_000) <= 1)
        time.observe(.with { $0.databaseTimeMs = 9_000_000 })
        #expect(time.now.milliseconds >= 9_000_000)
    }

    @Test("a push valid for 5 s is sent by the database's clock with any machine clock, never after its end")
    func session() {
        var bench = SessionBench()
        bench.open([("B", 3, 4, 4)])
        bench.wallTime = WallTime(milliseconds: 1_999)
        var context = bench.context
        context.machineTime = WallTime(milliseconds: 3_600_000)
        let notice = SessionBench.notice("B", channel: 3, after: 4, ids: [5])
        #expect(bench.machine.handle(.noticed(notice), in: context).pushed == [5])
        context.databaseTime = WallTime(milliseconds: 2_000)
        context.machineTime = WallTime(milliseconds: 0)
        let late = SessionBench.notice("B", channel: 3, after: 5, ids: [6])
        #expect(bench.machine.handle(.noticed(late), in: context).pushed.isEmpty)
    }
}
