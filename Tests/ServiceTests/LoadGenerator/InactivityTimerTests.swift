import Testing

@testable import LoadGenerator

@Suite("A load step without events ends as incomplete") struct InactivityTimerTests {
    private var timer = InactivityTimer()

    private mutating func wait(_ seconds: Int) { for _ in 0..<seconds { timer.recordWaitingSecond() } }

    @Test("15 s without an event are the limit; an event starts them again") mutating func limit() {
        timer.recordEvent()
        wait(15)
        #expect(!timer.isExpired)
        wait(1)
        #expect(timer.isExpired)
        timer.recordEvent()
        wait(15)
        #expect(!timer.isExpired)
        wait(1)
        #expect(timer.isExpired)
    }

    @Test("streams that still send and a new step start the time again") mutating func restart() {
        wait(14)
        timer.recordActivity()
        wait(14)
        #expect(!timer.isExpired)
        wait(1)
        #expect(timer.isExpired)
        timer.restart()
        wait(14)
        #expect(!timer.isExpired)
        wait(1)
        #expect(timer.isExpired)
    }
}
