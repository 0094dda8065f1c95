import Testing

@testable import ServiceKit

@Suite("A command waits for others only while many are in flight") struct RequestPatienceTests {
    @Test("few: each leaves at once") func few() {
        for inFlight in 0..<3 { #expect(MessageBus.batchingDelay(inFlight: inFlight) == .zero) }
    }

    @Test("many: longer the more there are, and never beyond 10 ms") func many() {
        #expect(MessageBus.batchingDelay(inFlight: 3) == .microseconds(1_200))
        #expect(MessageBus.batchingDelay(inFlight: 20) == .milliseconds(8))
        for inFlight in [500, 10_000, 1_000_000] {
            #expect(MessageBus.batchingDelay(inFlight: inFlight) == .milliseconds(10))
        }
    }
}
