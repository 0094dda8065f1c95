import Testing

@testable import MobileSync

@Suite("K9: when a client connects again") struct ReconnectPolicyTests {
    /// The longest and the shortest waits of the attempts of an outage. Each attempt begins when the last wait is over.
    private func waits(_ policy: inout ReconnectPolicy, from start: Duration, count: Int, random: Double) -> [Duration]
    {
        var now = start
        return (0..<count).map { _ in
            let decision = policy.next(after: .lost(reason: ""), openFor: nil, now: now, random: random)
            guard case .wait(let delay, atLeast: .zero) = decision else { return .zero }
            now += delay
            return delay
        }
    }

    @Test("waits double up to 16 s in a short outage, and follow an eighth of a long one up to 300 s") func grows() {
        var policy = ReconnectPolicy()
        let waits = waits(&policy, from: .seconds(1_000), count: 60, random: 1)
        #expect(waits.prefix(12).map(\.components.seconds) == [1, 2, 4, 8, 16, 16, 16, 16, 16, 16, 16, 16])
        var away = Duration.zero
        for wait in waits {
            #expect(wait <= max(.seconds(16), away / 8) + .milliseconds(1))
            away += wait
        }
        #expect(waits.last == .seconds(300))
    }

    @Test("a device that keeps being unlucky for four minutes is back 30 s after the service at the latest")
    func unlucky() {
        var policy = ReconnectPolicy()
        for second in 0..<240 {
            let decision = policy.next(
                after: .silent, openFor: .seconds(4), now: .seconds(second), random: 0.999_999)
            guard case .wait(let delay, atLeast: _) = decision else {
                Issue.record("\(decision)")
                return
            }
            #expect(delay <= .seconds(30))
        }
    }

    @Test("a connection that was open for 5 s, or that the app ended, starts anew") func startsAnew() {
        for (end, openFor) in [(ConnectionEnd.silent, Duration.seconds(5)), (.left, .zero)] {
            var policy = ReconnectPolicy()
            _ = waits(&policy, from: .zero, count: 60, random: 1)
            _ = policy.next(after: end, openFor: openFor, now: .seconds(90_000), random: 1)
            let next = waits(&policy, from: .seconds(90_001), count: 1, random: 1)
            #expect(next == [end == .left ? .seconds(1) : .seconds(2)])
        }
    }

    @Test("no wait is below 50 ms, and the gateway's delay is added") func bounds() {
        var policy = ReconnectPolicy()
        #expect(waits(&policy, from: .zero, count: 1, random: 0) == [.milliseconds(50)])
        let busy = ConnectionEnd.closed(code: 2_000, reason: "", retryAfter: .seconds(40), address: "")
        let decision = policy.next(after: busy, openFor: .seconds(9), now: .seconds(9), random: 0.5)
        #expect(decision == .wait(.milliseconds(500), atLeast: .seconds(40)))
    }
}
