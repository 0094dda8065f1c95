import DeliveryHistory
import SyncModel
import Testing

@Suite("D11: the database's clock, as its replies show it") struct DatabaseClockTests {
    private static let origin = ContinuousClock.now
    private static let noon: Int64 = 1_800_000_000_000

    /// The database's clock reads `noon` at the origin, plus `ahead`.
    private static func reply(
        _ clock: inout DatabaseClock, at milliseconds: Int64, roundTrip: Int64, readAfter: Int64, ahead: Int64 = 0
    ) {
        clock.observe(
            WallTime(milliseconds: noon + milliseconds + readAfter + ahead),
            askedAt: origin + .milliseconds(milliseconds),
            answeredAt: origin + .milliseconds(milliseconds + roundTrip))
    }

    private static func error(_ clock: DatabaseClock, at milliseconds: Int64, ahead: Int64 = 0) -> Int64? {
        clock.time(at: origin + .milliseconds(milliseconds)).map {
            abs($0.milliseconds - (noon + milliseconds + ahead))
        }
    }

    @Test("the time is unknown before the first reply; a message without a request does not set it") func unknown() {
        var clock = DatabaseClock(origin: Self.origin)
        #expect(clock.time(at: Self.origin) == nil)
        clock.observe(atLeast: WallTime(milliseconds: Self.noon), receivedAt: Self.origin)
        #expect(clock.time(at: Self.origin) == nil)
    }

    @Test("the quickest round trip bounds the error; slow replies behind it change nothing") func bounds() {
        var clock = DatabaseClock(origin: Self.origin)
        Self.reply(&clock, at: 0, roundTrip: 400, readAfter: 390)
        #expect(Self.error(clock, at: 500).map { $0 <= 201 } == true)
        Self.reply(&clock, at: 1_000, roundTrip: 4, readAfter: 1)
        #expect(Self.error(clock, at: 1_010).map { $0 <= 5 } == true)
        for second in 1...20 { Self.reply(&clock, at: Int64(second) * 1_000 + 500, roundTrip: 900, readAfter: 5) }
        #expect(Self.error(clock, at: 21_500).map { $0 <= 16 } == true, "10 ms of it is what the clocks may run apart")
    }

    @Test("a clock that was set is followed with the first reply, forward and back") func wasSet() {
        var clock = DatabaseClock(origin: Self.origin)
        Self.reply(&clock, at: 0, roundTrip: 4, readAfter: 2)
        for ahead: Int64 in [86_400_000, -86_400_000, 6_000] {
            Self.reply(&clock, at: 2_000, roundTrip: 4, readAfter: 2, ahead: ahead)
            #expect(Self.error(clock, at: 2_010, ahead: ahead).map { $0 <= 3 } == true)
        }
    }

    @Test("a message shows a clock that was set forward; a late message shows nothing") func messages() {
        var clock = DatabaseClock(origin: Self.origin)
        Self.reply(&clock, at: 0, roundTrip: 4, readAfter: 2)
        let received = Self.origin + .milliseconds(100)
        clock.observe(atLeast: WallTime(milliseconds: Self.noon - 60_000), receivedAt: received)
        #expect(Self.error(clock, at: 100).map { $0 <= 3 } == true)
        clock.observe(atLeast: WallTime(milliseconds: Self.noon + 100 + 3_600_000), receivedAt: received)
        #expect(Self.error(clock, at: 100, ahead: 3_600_000).map { $0 <= 501 } == true)
        Self.reply(&clock, at: 200, roundTrip: 4, readAfter: 2, ahead: 3_600_000)
        #expect(Self.error(clock, at: 210, ahead: 3_600_000).map { $0 <= 3 } == true)
    }

    @Test("random replies of a clock that runs 200 millionths fast: the error stays within a round trip")
    func random() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        var clock = DatabaseClock(origin: Self.origin)
        for step in 1...2_000 {
            let at = Int64(step) * 2_000
            let roundTrip = Int64.random(in: 1...50, using: &generator)
            Self.reply(
                &clock, at: at, roundTrip: roundTrip, readAfter: .random(in: 0...roundTrip, using: &generator),
                ahead: at / 5_000)
            guard let error = Self.error(clock, at: at + roundTrip, ahead: (at + roundTrip) / 5_000) else {
                Issue.record("no time, seed \(seed)")
                return
            }
            #expect(error <= 52, "seed \(seed), step \(step)")
        }
    }
}
