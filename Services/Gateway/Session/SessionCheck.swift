import BusMessages
import SyncModel

/// The verdict on a user session, and the time of the next request for one; pure (V3–V6).
///
/// The instant T of the tenant's statement is known only within bounds. The call that gave the reply began at most
/// `joinedAfterMs` before the request was sent, or below 0 at least so long after it, so T ≥ sent − joined. So a verdict
/// never counts as younger than it is, and the time in the validator's line is not part of its age.
/// The instant R of a revocation has an upper bound: the arrival of its notice, or now − ago for one that the store
/// reports. A verdict counts only if its lower bound is not below the upper bound of R, so no verdict from before a
/// revocation counts. The bounds can cost another request, but they never accept an old verdict. The number of a
/// revocation decides whether it is new, because the database's clock can step back.
struct SessionCheck {
    /// The longest pause between requests to a tenant that gives no verdict.
    private static let longestForTenant = Duration.seconds(60)
    /// The longest pause when no reply came. Broker or validators are then unavailable, and stored data must reach the
    /// device within seconds after they return (I6).
    private static let longestForUs = Duration.seconds(5)
    /// The longest age of a verdict for data with lifetime 0.
    private static let oldestReply = CommandQueue.validate.timeout

    /// The last verdict of the tenant.
    enum Verdict: Hashable {
        /// No verdict that counts.
        case unknown
        /// Valid. The call to the tenant did not begin before this instant.
        case valid(askedAt: ContinuousClock.Instant)
        case invalid
    }

    /// The value of the verdict for data with a verdict lifetime.
    enum VerdictValue {
        case valid
        /// It was valid and is too old. Data waits for a new verdict.
        case awaited
        /// No verdict counts. While the calls take longer than the lifetime, a verdict is too old when it comes, so
        /// nothing waits for the next one.
        case notValid
    }

    /// The effect of a validator's reply.
    enum Effect {
        case nothing
        /// A verdict that counts.
        case verdict
        /// A verdict from before a revocation or bind: it does not count, and another request is needed.
        case tooOld
    }

    /// The last reply with a valid verdict.
    private struct LastReply {
        /// The age of the verdict when the reply came.
        var age = Duration.zero
        /// The fraction of the lifetime after which a verdict is requested again.
        var renewsAt = 0.8
    }

    private(set) var verdict = Verdict.unknown
    /// A reply is being processed. Data with verdict lifetime 0 is sent only then (V5).
    var isFresh = false
    private var lastReply = LastReply()
    /// A verdict was requested and the reply has not come.
    private(set) var isAsking = false
    /// The next request after a reply without a verdict; nil: no back-off.
    private var retryAt: ContinuousClock.Instant?
    private var failures = 0
    /// Verdicts from before this instant do not count.
    private var notBefore: ContinuousClock.Instant?
    /// The tenant has revoked the session. Only a new bind makes it valid again.
    private var isRevoked = false
    /// When the first request of this bind was sent; nil before its reply.
    private var boundAt: ContinuousClock.Instant?
    /// The number of the newest revocation that the store reported. It can be from before the bind. 0: none.
    private var knownRevocation: Int64 = 0
    /// The last session state that was sent to the device; nil: none in this bind.
    private var lastSentToDevice: Bool?
    /// The end of the verdict's validity in the store.
    private var storeValidUntil: ContinuousClock.Instant?

    // MARK: Requests

    /// The instant from which on a verdict must be requested; nil: none, before another event.
    ///
    /// - Parameter lifetime: the shortest verdict lifetime above 0 of this session's data; nil: none.
    func nextRequest(for lifetime: Duration?, at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard !isAsking, !isRevoked else { return nil }
        if let retryAt { return retryAt }
        switch verdict {
        case .invalid: return nil
        // The instance had no validator at the bind, or when the last verdict stopped counting.
        case .unknown: return now
        case .valid(let askedAt): return lifetime.map { askedAt + $0 * lastReply.renewsAt }
        }
    }

    /// Whether waiting data justifies a request: not during back-off, and not when the verdict is invalid.
    var mayRequest: Bool { retryAt == nil && verdict != .invalid }

    /// Records that a request is sent; false: one is in flight already, or none can help.
    mutating func ask() -> Bool {
        guard !isAsking, !isRevoked else { return false }
        isAsking = true
        retryAt = nil
        return true
    }

    /// Applies a reply. Unknown is not invalid: a valid verdict continues to its end (V4).
    ///
    /// - Parameters:
    ///   - reply: nil: no reply came.
    ///   - sentAt: when the request was sent.
    ///   - random: in 0..<1, spreads the next request.
    mutating func answered(
        _ reply: Mss_Bus_V1_ValidateReply?, sentAt: ContinuousClock.Instant, now: ContinuousClock.Instant,
        random: Double
    ) -> Effect {
        isAsking = false
        guard !isRevoked else { return .nothing }
        let askedAt = sentAt - .milliseconds(reply?.joinedAfterMs ?? 0)
        // Each bind has its own check, and its first request is sent at once.
        let boundAt = boundAt ?? sentAt
        self.boundAt = boundAt
        switch reply?.verdict {
        case .valid?:
            failures = 0
            if let notBefore, askedAt < notBefore { return .tooOld }
            verdict = .valid(askedAt: askedAt)
            lastReply = LastReply(age: askedAt.duration(to: now), renewsAt: 0.7 + 0.2 * random)
            return .verdict
        case .invalid?:
            failures = 0
            // The verdict may be from before the user signed in again. The next reply decides; until then no verdict
            // counts.
            if askedAt < boundAt {
                if case .valid = verdict { verdict = .unknown }
                return .tooOld
            }
            verdict = .invalid
            return .verdict
        default:
            failures += 1
            let longest = reply == nil ? Self.longestForUs : Self.longestForTenant
            let delay = min(longest, .seconds(1 << min(failures - 1, 6)))
            retryAt = now + delay * (0.5 + random)
            return .nothing
        }
    }

    // MARK: Endings

    /// Applies an invalid verdict that another gateway received. A reply in flight may be older.
    mutating func end(at now: ContinuousClock.Instant) {
        verdict = .invalid
        retryAt = nil
        notBefore = now
    }

    /// Applies a revocation.
    mutating func revoke(at now: ContinuousClock.Instant) {
        end(at: now)
        isRevoked = true
    }

    /// Applies a revocation that the store reports.
    ///
    /// - Parameters:
    ///   - number: a later revocation has a higher one.
    ///   - ago: the time before the store's reply, in whole milliseconds, rounded down.
    ///   - isNewBind: the bind took effect with this reply, after the revocation: a later verdict counts.
    /// - Returns: whether it ends the session: it is new to a bind from before it.
    mutating func applyRevocation(
        _ number: Int64, ago: Duration, now: ContinuousClock.Instant, isNewBind: Bool
    ) -> Bool {
        guard !isRevoked, number > knownRevocation else { return false }
        knownRevocation = number
        guard isNewBind else {
            revoke(at: now)
            return true
        }
        let latest = now - ago
        notBefore = notBefore.map { max($0, latest) } ?? latest
        if case .valid(let askedAt) = verdict, askedAt < latest { verdict = .unknown }
        return false
    }

    // MARK: Value

    /// The value of the verdict for data with this verdict lifetime; 0: a verdict for each batch.
    func standing(for lifetime: Duration, at now: ContinuousClock.Instant) -> VerdictValue {
        guard case .valid(let askedAt) = verdict else { return .notValid }
        let longest = lifetime > .zero ? lifetime : Self.oldestReply
        if lifetime > .zero || isFresh, now < askedAt + longest { return .valid }
        return failures == 0 && lastReply.age < longest ? .awaited : .notValid
    }

    /// The remaining validity by a lifetime; zero: not valid.
    func remaining(of lifetime: Duration, at now: ContinuousClock.Instant) -> Duration {
        guard case .valid(let askedAt) = verdict else { return .zero }
        return max(.zero, now.duration(to: askedAt + lifetime))
    }

    /// Records the state that is sent to the device; false: the device has it already.
    mutating func isNewToDevice(_ isValid: Bool) -> Bool {
        defer { lastSentToDevice = isValid }
        return lastSentToDevice != isValid
    }

    /// Whether the store must be updated: its information is wrong, or soon will be.
    func isNewToStore(_ remaining: Duration, of lifetime: Duration, at now: ContinuousClock.Instant) -> Bool {
        guard let storeValidUntil, storeValidUntil > now else { return remaining > .zero }
        return remaining == .zero || storeValidUntil.duration(to: now + remaining) >= lifetime / 4
    }

    /// Records the remaining validity that is sent to the store.
    mutating func recordSentToStore(_ remaining: Duration, at now: ContinuousClock.Instant) {
        storeValidUntil = remaining > .zero ? now + remaining : nil
    }
}
