import Testing

@testable import ServiceKit

@Suite("A command waits for others only where many are under way") struct RequestPatienceTests {
    @Test("few: each leaves at once") func few() {
        for underWay in 0..<50 { #expect(MessageBus.patience(underWay: underWay) == .zero) }
    }

    @Test("many: longer the more there are, and never beyond 10 ms") func many() {
        #expect(MessageBus.patience(underWay: 50) == .milliseconds(1))
        #expect(MessageBus.patience(underWay: 250) == .milliseconds(5))
        for underWay in [500, 10_000, 1_000_000] {
            #expect(MessageBus.patience(underWay: underWay) == .milliseconds(10))
        }
    }
}
