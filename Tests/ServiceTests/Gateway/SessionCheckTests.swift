import BusMessages
import SyncModel
import Testing

@testable import Gateway

@Suite("Times of verdict requests")
struct SessionCheckTests {
    private let start = ContinuousClock.now

    /// Whether a new request is due this long after the request for a valid verdict of 100 s.
    private func isDue(after seconds: Int, random: Double) -> Bool {
        var check = SessionCheck()
        _ = check.ask()
        var reply = Mss_Bus_V1_ValidateReply()
        reply.verdict = .valid
        _ = check.answered(reply, sentAt: start, now: start, random: random)
        guard let due = check.nextRequest(for: .seconds(100), at: start) else { return false }
        return due <= start + .seconds(seconds)
    }

    @Test("V5: a verdict is requested again before its end, at a random time")
    func jitter() {
        #expect(!isDue(after: 69, random: 0) && isDue(after: 70, random: 0))
        #expect(!isDue(after: 79, random: 0.5) && isDue(after: 81, random: 0.5))
        #expect(!isDue(after: 89, random: 0.999) && isDue(after: 90, random: 0.999))
    }

    /// The pauses after replies of one kind, for the mean random value.
    private func pauses(_ reply: Mss_Bus_V1_ValidateReply?, count: Int) -> [Duration] {
        var check = SessionCheck()
        return (0..<count).map { _ in
            _ = check.ask()
            _ = check.answered(reply, sentAt: start, now: start, random: 0.5)
            var pause = Duration.zero
            guard let due = check.nextRequest(for: nil, at: start) else { return .zero }
            while start + pause < due { pause += .seconds(1) }
            return pause
        }
    }

    @Test("V4: an unknown verdict delays the next request up to a minute, missing validators 5 s")
    func longestPause() {
        #expect(pauses(.init(), count: 8) == [1, 2, 4, 8, 16, 32, 60, 60].map(Duration.seconds))
        #expect(pauses(nil, count: 5) == [1, 2, 4, 5, 5].map(Duration.seconds))
    }
}
