import BusMessages
import SyncModel

/// What a session knows of its tenant's word on it, and when it asks again; pure (spec V3–V6).
struct SessionCheck {
    private(set) var verdict = SessionVerdict.unknown
    private var isAsking = false
    private var askAt: ContinuousClock.Instant?
    private var failures = 0

    /// Whether it is time to ask again.
    func isDue(at now: ContinuousClock.Instant) -> Bool { askAt.map { $0 <= now } ?? false }

    /// Notes that a question goes out; false when one is on its way already.
    mutating func ask() -> Bool {
        guard !isAsking else { return false }
        isAsking = true
        askAt = nil
        return true
    }

    /// Takes the answer.
    ///
    /// - Parameters:
    ///   - reply: nil when none came.
    ///   - random: in 0..<1, spreads the next question.
    /// - Returns: whether the tenant said something. Unknown is not invalid: a verdict that stands goes on until its
    ///   lifetime ends (spec V4).
    mutating func answered(
        _ reply: Mss_Bus_V1_ValidateReply?, askedAt: ContinuousClock.Instant, now: ContinuousClock.Instant,
        random: Double
    ) -> Bool {
        isAsking = false
        switch reply?.verdict {
        case .valid?:
            let lifetime = Duration.milliseconds(reply?.validForMs ?? 0)
            failures = 0
            // The lifetime counts from the question: that is when the tenant's word was true.
            verdict = .valid(until: askedAt + lifetime)
            askAt = askedAt + lifetime * (0.7 + 0.2 * random)
            return true
        case .invalid?:
            verdict = .invalid
            askAt = nil
            return true
        default:
            failures += 1
            let delay = min(Duration.seconds(60), .seconds(1 << min(failures - 1, 6)))
            askAt = now + delay * (0.5 + random)
            return false
        }
    }

    /// How long the verdict goes on being valid; zero when it is not.
    func remaining(at now: ContinuousClock.Instant) -> Duration {
        if case .valid(let until) = verdict { return max(.zero, now.duration(to: until)) }
        return .zero
    }
}
