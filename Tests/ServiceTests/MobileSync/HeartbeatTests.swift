import DeliveryHistory
import TestSupport
import Testing

@testable import MobileSync

@Suite("K9: the heartbeat adapts to the network") struct HeartbeatTests {
    @Test("three answers in a row lengthen it, up to the gateway's limit") func grows() {
        var heartbeat = Heartbeat(usual: .seconds(60), longest: .seconds(200))
        var intervals: [Duration] = []
        for _ in 0..<15 {
            heartbeat.answered(after: heartbeat.interval)
            intervals.append(heartbeat.interval)
        }
        #expect(intervals[1] == .seconds(60) && intervals[2] == .seconds(90) && intervals[5] == .seconds(135))
        #expect(intervals.last == .seconds(200))
        #expect(heartbeat.interval(inForeground: true) == .seconds(60), "a dead connection is found soon there")
    }

    @Test("an answer after less idle time does not count: other frames kept the connection alive") func busy() {
        var heartbeat = Heartbeat(usual: .seconds(60), longest: .seconds(200))
        for _ in 0..<10 { heartbeat.answered(after: .seconds(5)) }
        #expect(heartbeat.interval == .seconds(60) && heartbeat.learned == Heartbeat.Learned())
    }

    @Test("two dead connections in a row shorten it to what was good, and that length is not tried again")
    func shrinks() {
        var heartbeat = Heartbeat(usual: .seconds(60), longest: .seconds(200))
        for _ in 0..<3 { heartbeat.answered(after: .seconds(60)) }
        #expect(heartbeat.interval == .seconds(90))
        heartbeat.failed(after: .seconds(90))
        #expect(heartbeat.interval == .seconds(90), "one may have been a tunnel")
        heartbeat.failed(after: .seconds(90))
        #expect(heartbeat.interval == .seconds(60))
        for _ in 0..<9 { heartbeat.answered(after: .seconds(60)) }
        #expect(heartbeat.interval == .seconds(60))
        #expect(heartbeat.learned == Heartbeat.Learned(good: .seconds(60), bad: .seconds(90)))
    }

    @Test("the adapted length is used for the next connection on the same network") func remembered() {
        let good = Heartbeat(usual: .seconds(60), longest: .seconds(300), learned: .init(good: .seconds(135), bad: nil))
        #expect(good.interval == .seconds(135))
        let bad = Heartbeat(usual: .seconds(60), longest: .seconds(300), learned: .init(good: nil, bad: .seconds(60)))
        #expect(bad.interval == .seconds(30))
    }

    @Test("two connections that are found dead one after the other count, although each begins anew")
    func shrinksOverConnections() {
        var learned = Heartbeat.Learned()
        for _ in 0..<2 {
            var heartbeat = Heartbeat(usual: .seconds(60), longest: .seconds(200), learned: learned)
            for _ in 0..<3 { heartbeat.answered(after: .seconds(60)) }
            #expect(heartbeat.interval == .seconds(90))
            heartbeat.failed(after: .seconds(90))
            learned = heartbeat.learned
        }
        #expect(learned.good == .seconds(60) && learned.bad == .seconds(90))
        #expect(Heartbeat(usual: .seconds(60), longest: .seconds(200), learned: learned).interval == .seconds(60))
    }

    @Test("after any events, it stays between its limits") func bounds() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let usual = Duration.seconds(Int.random(in: 1...120, using: &generator))
            let longest = Duration.seconds(Int.random(in: 1...600, using: &generator))
            var heartbeat = Heartbeat(usual: usual, longest: longest)
            for _ in 0..<50 {
                if Bool.random(using: &generator) {
                    heartbeat.answered(after: heartbeat.interval)
                } else {
                    heartbeat.failed(after: heartbeat.interval)
                }
                #expect(heartbeat.interval <= max(usual, longest), "seed \(seed)")
                #expect(heartbeat.interval >= min(usual, Heartbeat.shortest), "seed \(seed)")
            }
        }
    }
}
