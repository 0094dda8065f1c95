import Testing

@testable import AMQP

@Suite("Probes of a cluster")
struct QuorumProbeTests {
    private let start = ContinuousClock.now

    /// The probes of a connection since `start` that has confirmed one.
    private func provenProbe() -> QuorumProbe {
        var probe = QuorumProbe(now: start)
        _ = probe.sends(at: start)
        probe.end(.confirmed)
        return probe
    }

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    @Test("R10: one probe at a time, every 500 ms") func interval() {
        var probe = provenProbe()
        #expect(probe.untilNext(at: at(100)) == .milliseconds(400))
        let sent = [499, 500, 1_500].map { probe.sends(at: at($0)) }
        #expect(sent == [false, true, false], "the first has no outcome at 1,500 ms")
        #expect(probe.untilNext(at: at(1_500)) == .milliseconds(500) + QuorumProbe.limit - .milliseconds(1_500))
        probe.end(.confirmed)
        let isNextSent = probe.sends(at: at(1_600))
        #expect(isNextSent)
    }

    @Test("R10: a new connection sends a probe at once; it is left after 1 s, the next ones after twice that time")
    func newConnection() {
        var previous: QuorumProbe?
        for limit in [1_000, 2_000, 3_200, 3_200] {
            var probe = QuorumProbe(now: start, after: previous)
            let isFirstSent = probe.sends(at: start)
            #expect(isFirstSent && probe.untilNext(at: start) == .milliseconds(limit))
            probe.end(.refused)
            #expect(!probe.hasFailed(at: at(limit - 1)) && probe.hasFailed(at: at(limit)))
            previous = probe
        }
        var probe = QuorumProbe(now: start, after: provenProbe())
        _ = probe.sends(at: start)
        #expect(probe.hasFailed(at: at(1_000)), "the connection before has confirmed one")
        probe.end(.confirmed)
        _ = probe.sends(at: at(1_000))
        #expect(!probe.hasFailed(at: at(4_199)), "it has confirmed one now")
    }

    @Test("R10: the node has lost the others when a probe waits for 3.2 s; a refusal is no confirmation")
    func failure() {
        var probe = provenProbe()
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
        var probe = provenProbe()
        _ = probe.sends(at: at(500))
        probe.pause(at: at(8_000))
        #expect(!probe.hasFailed(at: at(11_199)))
        #expect(probe.hasFailed(at: at(11_200)), "the probe still waits")
    }
}
