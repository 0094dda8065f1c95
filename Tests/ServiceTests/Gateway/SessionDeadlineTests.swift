import BusMessages
import DeviceProtocol
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

@Suite("The deadlines of a session")
struct SessionDeadlineTests {
    @Test("silence closes: no Connect in time, no heartbeat in time")
    func silenceCloses() {
        var bench = Bench()
        #expect(bench.handle(.ticked).isEmpty)
        bench.now += SessionLimits().connectDeadline
        #expect(bench.handle(.ticked).closeCode == .idle)
        bench = Bench()
        bench.open()
        bench.now += SessionLimits().heartbeat * 5 / 2 - .seconds(1)
        #expect(bench.handle(.ticked).closeCode == nil)
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).closeCode == .idle)
    }

    @Test("an idle session needs no tick before its next deadline: a new verdict, or the end of the silence")
    func idleTicks() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.instance.verdictLifetime = .seconds(100)
        bench.open()
        _ = bench.answer(.valid)
        #expect(isDue(in: &bench, after: [0]) == [true], "after an event it is not known")
        #expect(bench.handle(.ticked).isEmpty)
        #expect(isDue(in: &bench, after: [0, 69, 91]) == [false, false, true])
        bench.receive { $0.ping.number = 1 }
        #expect(isDue(in: &bench, after: [0]) == [true])
        #expect(bench.handle(.ticked).isEmpty)
        #expect(isDue(in: &bench, after: [0]) == [false])
        _ = bench.machine.recheck([], in: bench.context)
        #expect(isDue(in: &bench, after: [0]) == [true], "a recheck can request a verdict, which has a deadline")
        var idle = Bench()
        idle.open()
        #expect(idle.handle(.ticked).isEmpty)
        let end = Int((SessionLimits().heartbeat * 5 / 2).components.seconds)
        #expect(isDue(in: &idle, after: [0, end - 1, end]) == [false, false, true])
        _ = idle.handle(.drained)
        #expect(isDue(in: &idle, after: [end]) == [false], "it is closed")
    }

    private func isDue(in bench: inout Bench, after seconds: [Int]) -> [Bool] {
        seconds.map { bench.machine.isTickDue(at: bench.now + .seconds($0)) }
    }
}
