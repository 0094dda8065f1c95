import BusMessages
import SyncModel

/// What a session knows of its tenant's word on it, and when it asks again; pure (spec V3–V6).
///
/// When the tenant spoke, T, is known within bounds only. From below: the question came to the validator after it was
/// sent, and the call that answers it had begun at most `joined_after` before that, so T ≥ sent − joined_after: a
/// verdict is never taken for younger than it is. When it ended a session, R, is bounded from above: R ≤ when the
/// notice came, and R ≤ now − ago when the store told it. What counts is a word with the first bound not below the
/// second, so none from before the revocation counts. The bounds may cost a question more; they never let one through.
/// Whether a revocation is news goes by its number: the database's clock may step back.
struct SessionCheck {
    /// The longest pause between questions to a tenant that gives no verdict.
    private static let longestForTenant = Duration.seconds(60)
    /// The longest when nobody asked it: that ends with the outage of a broker or of the validators, and what was
    /// stored meanwhile is to reach its device within seconds of that (reliability §5).
    private static let longestForUs = Duration.seconds(5)

    /// The tenant's last word.
    enum Word: Hashable {
        /// None that counts.
        case unknown
        /// Valid; the tenant was not asked before this instant.
        case valid(askedAt: ContinuousClock.Instant)
        case invalid
    }

    /// What the word is worth to data of some verdict lifetime.
    enum Standing {
        case valid
        /// It was valid and is too old now; the tenant is there to be asked.
        case awaited
        case notValid
    }

    /// What an answer means to the session.
    enum Heard {
        case nothing
        /// A word that counts.
        case word
        /// A word from before what ended the verdict: it does not count, another is needed.
        case tooOld
    }

    private(set) var word = Word.unknown
    /// The answer to a question is being acted on: no younger word can be had. Data with the lifetime 0, or one shorter
    /// than a call takes, goes out then and never else (spec V5).
    var isFresh = false
    /// A question is on its way to the tenant.
    private(set) var isAsking = false
    /// The tenant gave no verdict: it is asked again then, and not before.
    private var retryAt: ContinuousClock.Instant?
    private var failures = 0
    /// Where in its life a verdict is asked for anew.
    private var renewsAt = 0.8
    /// Words from before do not count.
    private var notBefore: ContinuousClock.Instant?
    /// The tenant has ended the session: nothing but a new bind brings it back.
    private var isRevoked = false
    /// When the first question of this bind went out; nil before its answer.
    private var boundAt: ContinuousClock.Instant?
    /// The newest that the store has told of; from before the bind, if it has not ended the session. 0: none.
    private var knownRevocation: Int64 = 0
    /// The last news to the device; nil: none of this bind.
    private var toldDevice: Bool?
    /// Until when the store believes the verdict to be valid.
    private var toldStore: ContinuousClock.Instant?

    // MARK: Asking

    /// Whether it is time to ask again.
    ///
    /// - Parameter lifetime: the shortest above 0 that this session's data has; nil: there is none.
    func isDue(for lifetime: Duration?, at now: ContinuousClock.Instant) -> Bool {
        guard !isAsking, !isRevoked else { return false }
        if let retryAt { return retryAt <= now }
        switch word {
        case .invalid: return false
        // There was nobody to be asked when the session was bound, or when its last word ceased to count.
        case .unknown: return true
        case .valid(let askedAt): return lifetime.map { askedAt + $0 * renewsAt <= now } ?? false
        }
    }

    /// Whether data that waits for a word is reason to ask: not while backing off, nor when the word is no.
    var isWorthAsking: Bool { retryAt == nil && word != .invalid }

    /// Notes that a question goes out; false when one is on its way already, or none can help.
    mutating func ask() -> Bool {
        guard !isAsking, !isRevoked else { return false }
        isAsking = true
        retryAt = nil
        return true
    }

    /// Takes the answer. Unknown is not invalid: a verdict that stands goes on to its end (spec V4).
    ///
    /// - Parameters:
    ///   - reply: nil when none came.
    ///   - sentAt: when the question went out.
    ///   - random: in 0..<1, spreads the next question.
    mutating func answered(
        _ reply: Mss_Bus_V1_ValidateReply?, sentAt: ContinuousClock.Instant, now: ContinuousClock.Instant,
        random: Double
    ) -> Heard {
        isAsking = false
        guard !isRevoked else { return .nothing }
        #if KNOWN_BAD
            let askedAt = KnownBad.verdictFromAnswer.isOn ? now : sentAt - .milliseconds(reply?.joinedAfterMs ?? 0)
            if KnownBad.failOpen.isOn, reply == nil {
                word = .valid(askedAt: askedAt)
                return .word
            }
            if KnownBad.invalidIgnored.isOn, reply?.verdict == .invalid { return .nothing }
        #else
            let askedAt = sentAt - .milliseconds(reply?.joinedAfterMs ?? 0)
        #endif
        // Each bind has a check of its own, and its first question goes out at once.
        let boundAt = boundAt ?? sentAt
        self.boundAt = boundAt
        switch reply?.verdict {
        case .valid?:
            failures = 0
            if let notBefore, askedAt < notBefore { return .tooOld }
            word = .valid(askedAt: askedAt)
            renewsAt = 0.7 + 0.2 * random
            return .word
        case .invalid?:
            failures = 0
            // It may be of before the user signed in anew: the next answer tells, and until then nothing counts.
            if askedAt < boundAt {
                if case .valid = word { word = .unknown }
                return .tooOld
            }
            word = .invalid
            return .word
        default:
            failures += 1
            let longest = reply == nil ? Self.longestForUs : Self.longestForTenant
            let delay = min(longest, .seconds(1 << min(failures - 1, 6)))
            retryAt = now + delay * (0.5 + random)
            return .nothing
        }
    }

    // MARK: Endings

    /// The tenant has called the session invalid when another asked. An answer that is on its way may be older.
    mutating func end(at now: ContinuousClock.Instant) {
        word = .invalid
        retryAt = nil
        notBefore = now
    }

    /// The tenant has ended the session.
    mutating func revoke(at now: ContinuousClock.Instant) {
        end(at: now)
        isRevoked = true
    }

    /// The store knows of a revocation of this session.
    ///
    /// - Parameters:
    ///   - number: a later revocation has a higher one.
    ///   - ago: before the store's answer, in whole milliseconds, rounded down.
    ///   - isNewBind: the bind took effect with this answer, after the revocation: a word from then on counts.
    /// - Returns: whether it ends the session: it is news to a bind from before it.
    mutating func learnRevocation(
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
        if case .valid(let askedAt) = word, askedAt < latest { word = .unknown }
        return false
    }

    // MARK: What it is worth

    /// What the word is worth to data whose verdict may be at most so old; 0: asked for each batch.
    func standing(for lifetime: Duration, at now: ContinuousClock.Instant) -> Standing {
        guard case .valid(let askedAt) = word else { return .notValid }
        #if KNOWN_BAD
            if KnownBad.verdictForever.isOn { return .valid }
        #endif
        if isFresh || now < askedAt + lifetime { return .valid }
        return failures == 0 ? .awaited : .notValid
    }

    /// How long the verdict goes on being valid by a lifetime; zero when it is not.
    func remaining(of lifetime: Duration, at now: ContinuousClock.Instant) -> Duration {
        guard case .valid(let askedAt) = word else { return .zero }
        return max(.zero, now.duration(to: askedAt + lifetime))
    }

    /// Notes what the device is told; false when it knows.
    mutating func isNewsToDevice(_ isValid: Bool) -> Bool {
        defer { toldDevice = isValid }
        return toldDevice != isValid
    }

    /// Whether the store is to be told: what it believes is wrong, or soon will be.
    func isNewsToStore(_ remaining: Duration, of lifetime: Duration, at now: ContinuousClock.Instant) -> Bool {
        guard let toldStore, toldStore > now else { return remaining > .zero }
        return remaining == .zero || toldStore.duration(to: now + remaining) >= lifetime / 4
    }

    /// Notes what the store is told.
    mutating func storeKnows(_ remaining: Duration, at now: ContinuousClock.Instant) {
        toldStore = remaining > .zero ? now + remaining : nil
    }
}
