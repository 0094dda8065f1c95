import Testing

@testable import ServiceKit

@Suite("A command waits for others only where many are under way") struct RequestPatienceTests {
    @Test("few: each leaves at once") func few() {
        for underWay in 0..<3 { #expect(MessageBus.patience(underWay: underWay) == .zero) }
    }

    @Test("many: longer the more there are, and never beyond 10 ms") func many() {
        #expect(MessageBus.patience(underWay: 3) == .microseconds(1_200))
        #expect(MessageBus.patience(underWay: 20) == .milliseconds(8))
        for underWay in [500, 10_000, 1_000_000] {
            #expect(MessageBus.patience(underWay: underWay) == .milliseconds(10))
        }
    }
}
