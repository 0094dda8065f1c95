import Testing

@testable import AMQP

@Suite("Connecting to the broker again") struct ReconnectScheduleTests {
    @Test("pauses double up to three seconds, at least half of each, and start anew after a success")
    func pauses() {
        var schedule = ReconnectSchedule()
        let shortest = (0..<8).map { _ in schedule.pauseAfterFailure(random: 0) }
        #expect(shortest.prefix(3) == [.milliseconds(50), .milliseconds(100), .milliseconds(200)])
        #expect(shortest.suffix(2) == [.milliseconds(1_500), .milliseconds(1_500)])
        #expect(schedule.pauseAfterFailure(random: 0.999) < .seconds(3))
        schedule.succeeded()
        #expect(schedule.pauseAfterFailure(random: 0) == .milliseconds(50))
    }

    @Test("R10: the first attempt after a lost connection lasts 1 s, each later one twice as long") func patience() {
        var schedule = ReconnectSchedule()
        #expect(schedule.patience == .seconds(1), "at the start of the process")
        let lasting = (0..<4).map { _ in
            _ = schedule.pauseAfterFailure(random: 0)
            return schedule.patience
        }
        #expect(lasting == [1, 2, 4, 8].map { .seconds($0) })
    }

    @Test("thousands of failures do not overflow") func endures() {
        var schedule = ReconnectSchedule()
        for _ in 0..<5_000 { #expect(schedule.pauseAfterFailure(random: 0.5) <= .seconds(3)) }
        #expect(schedule.patience > .seconds(5))
    }
}
