import Testing

@testable import AMQP

@Suite("Probes of a cluster")
struct QuorumProbeTests {
    private let start = ContinuousClock.now

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    @Test("R10: one probe at a time, every 500 ms") func interval() {
        var probe = QuorumProbe(now: start)
        #expect(probe.untilNext(at: at(100)) == .milliseconds(400))
        let sent = [499, 500, 1_500].map { probe.sends(at: at($0)) }
        #expect(sent == [false, true, false], "the first has no outcome at 1,500 ms")
        #expect(probe.untilNext(at: at(1_500)) == .milliseconds(500) + QuorumProbe.limit - .milliseconds(1_500))
        probe.end(.confirmed)
        let isNextSent = probe.sends(at: at(1_600))
        #expect(isNextSent)
    }

    @Test("R10: the node has lost the others when a probe waits for 3.2 s; a refusal is no confirmation")
    func failure() {
        var probe = QuorumProbe(now: start)
        #expect(!probe.hasFailed(at: at(9_000)), "no probe waits: the process was paused")
        _ = probe.sends(at: at(9_000))
        #expect(!probe.hasFailed(at: at(12_199)))
        #expect(probe.hasFailed(at: at(12_200)))
        probe.end(.refused)
        #expect(probe.hasFailed(at: at(12_200)))
        let isNextSent = probe.sends(at: at(12_200))
        #expect(isNextSent)
        probe.end(.confirmed)
        #expect(!probe.hasFailed(at: at(12_300)))
    }

    @Test("R10: time in which the broker blocks the connection does not count") func blocked() {
        var probe = QuorumProbe(now: start)
        _ = probe.sends(at: at(500))
        probe.pause(at: at(8_000))
        #expect(!probe.hasFailed(at: at(11_199)))
        #expect(probe.hasFailed(at: at(11_200)), "the probe still waits")
    }
}
