import BusMessages
import Credentials
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Asking the tenant whether the session is valid, and what follows from its word (spec V4–V6, H7).
extension SessionStateMachine {
    /// Something that was read for the device and waits for a word of the tenant.
    struct Parked {
        /// What it is.
        enum Read {
            case page(Mss_Bus_V1_FetchReply, channelID: Int64)
            case history(Mss_Bus_V1_HistoryReply, id: UInt64)
            case summary(Mss_Bus_V1_SummaryReply, id: UInt64)
            case resend(channelID: Int64, OplogID, repeats: Int)
        }

        let read: Read
        let since: ContinuousClock.Instant
    }

    // MARK: Questions

    /// Asks, unless a question is on its way.
    mutating func validate(in world: SessionSurroundings) -> [SessionAction] {
        guard
            let identity, let userID = identity.userID, let instance = world.instance(identity.instanceID),
            !instance.validatorURL.isEmpty, check.ask()
        else { return [] }
        return [
            .validate(
                instanceID: identity.instanceID, userID: userID, sessionID: identity.sessionID,
                bindNumber: identity.bindNumber)
        ]
    }

    /// Asks because data waits for a word.
    mutating func askForWord(in world: SessionSurroundings) -> [SessionAction] {
        check.isWorthAsking ? validate(in: world) : []
    }

    /// Asks anew when a verdict of this session is to be renewed, so that data need not wait for it.
    mutating func validateWhenDue(in world: SessionSurroundings) -> [SessionAction] {
        guard let identity, check.isDue(for: shortestLifetime(of: identity, in: world), at: world.now) else {
            return []
        }
        return validate(in: world)
    }

    /// Of the verdicts that this session's data goes out on, without those that are asked for each batch; the
    /// instance's is among them, since the store goes by it.
    private func shortestLifetime(of identity: SessionIdentity, in world: SessionSurroundings) -> Duration? {
        let configured = cursors.keys.compactMap { key -> Duration? in
            guard let found = world.configuration(identity.instanceID, key.bizType), found.checksSession else {
                return nil
            }
            return found.verdictLifetime
        }
        return (configured + [storeLifetime(in: world)]).filter { $0 > .zero }.min()
    }

    /// The store says SUCCESS or NOT_ONLINE, and explains, by the instance's lifetime (spec H4): it is told nothing of
    /// what single configurations ask for beyond that. With the lifetime 0 the last verdict counts (spec §1, Eligible).
    private func storeLifetime(in world: SessionSurroundings) -> Duration {
        guard let lifetime = identity.flatMap({ world.instance($0.instanceID)?.verdictLifetime }) else { return .zero }
        return lifetime > .zero ? lifetime : Limits.longestVerdictLifetime
    }

    /// How long the store may take the session for valid; it is told that now.
    mutating func verdictForStore(in world: SessionSurroundings) -> Duration {
        let remaining = check.remaining(of: storeLifetime(in: world), at: world.now)
        check.storeKnows(remaining, at: world.now)
        return remaining
    }

    // MARK: Answers

    /// The tenant's answer, or that there is none; an answer to an older bind is ignored.
    ///
    /// - Parameter askedAt: when the question went out.
    mutating func validated(
        _ reply: Mss_Bus_V1_ValidateReply?, bindNumber: UInt32, askedAt: ContinuousClock.Instant,
        in world: SessionSurroundings
    ) -> [SessionAction] {
        guard phase == .open || phase == .opening, bindNumber == identity?.bindNumber else { return [] }
        var actions: [SessionAction] = []
        switch check.answered(reply, sentAt: askedAt, now: world.now, random: world.random()) {
        case .nothing: break
        case .tooOld:
            let next = validate(in: world)
            // Nobody is left to be asked: what waits goes on by what is known.
            if !next.isEmpty { return next }
        case .word:
            // The registration that it may take tells the store of the verdict.
            let takes = takeOwnership(in: world)
            actions = tellVerdict(reply?.reason ?? "", in: world) + takes
            check.isFresh = true
        }
        defer { check.isFresh = false }
        return actions + releaseRequests(in: world) + resume(in: world) + readOn(in: world)
    }

    /// The tenant has called a session invalid when some gateway asked: nothing goes out on it from now on (spec V6).
    mutating func invalidated(
        _ userID: UserID, digest: [UInt8], reason: String, in world: SessionSurroundings
    ) -> [SessionAction] {
        guard
            phase == .open || phase == .opening, let identity, identity.userID == userID,
            identity.sessionDigest == digest
        else { return [] }
        let isNews = check.word != .invalid
        // Said again, it ends also what has been asked since it was said first.
        check.end(at: world.now)
        return isNews ? verdictEnded(reason, in: world) : []
    }

    /// The tenant has ended sessions (spec H7).
    ///
    /// - Parameter digest: of the session's id; empty: every session of the user.
    mutating func revoked(
        _ userID: UserID, digest: [UInt8], in world: SessionSurroundings
    ) -> [SessionAction] {
        guard
            phase == .open || phase == .opening, let identity, identity.userID == userID,
            digest.isEmpty || digest == identity.sessionDigest
        else { return [] }
        #if KNOWN_BAD
            if KnownBad.revocationIgnored.isOn { return [] }
        #endif
        check.revoke(at: world.now)
        return verdictEnded(Self.revocation, in: world)
    }

    /// The store's answer to a registration says that the bound session was ended.
    mutating func learnRevocation(
        _ reply: Mss_Bus_V1_SessionReply, in world: SessionSurroundings
    ) -> [SessionAction] {
        #if KNOWN_BAD
            if KnownBad.revocationNotLearned.isOn { return [] }
        #endif
        guard reply.hasRevokedAgoMs else { return [] }
        let ends = check.learnRevocation(
            reply.revocationNumber, ago: .milliseconds(reply.revokedAgoMs), now: world.now, isNewBind: opensBind)
        if ends { return verdictEnded(Self.revocation, in: world) }
        return check.word == .unknown ? askForWord(in: world) : []
    }

    private static let revocation = "the session was ended; sign in again"

    private mutating func verdictEnded(_ reason: String, in world: SessionSurroundings) -> [SessionAction] {
        tellVerdict(reason, in: world) + releaseRequests(in: world) + resume(in: world) + readOn(in: world)
    }

    /// Tells device and store what holds now.
    private mutating func tellVerdict(_ reason: String, in world: SessionSurroundings) -> [SessionAction] {
        guard let identity else { return [] }
        let isValid = check.word != .invalid
        var actions: [SessionAction] = []
        if check.isNewsToDevice(isValid) {
            let state = Mss_Device_V1_Packet.sessionState(
                isValid: isValid, reason: isValid ? "" : reason, bindNumber: identity.bindNumber)
            if opensBind { untoldState = state } else { actions.append(.send(state)) }
        }
        guard connectionEpoch > 0, !isRegistering else {
            // The registration on its way does not know it: the store is told when that is answered.
            hasUntoldVerdict = true
            return actions
        }
        return actions + tellStore(in: world)
    }

    /// Tells the store how long the verdict stands, if that is news.
    mutating func tellStore(in world: SessionSurroundings) -> [SessionAction] {
        let lifetime = storeLifetime(in: world)
        let remaining = check.remaining(of: lifetime, at: world.now)
        guard let identity, check.isNewsToStore(remaining, of: lifetime, at: world.now) else { return [] }
        return [.update(identity, connectionEpoch: connectionEpoch, verdictFor: verdictForStore(in: world))]
    }

    // MARK: Requests that wait for a word

    /// Keeps a request of the device until the tenant has answered.
    ///
    /// - Returns: nil: no answer is on its way, so the device is to ask again.
    mutating func hold(_ request: Mss_Device_V1_Packet, in world: SessionSurroundings) -> [SessionAction]? {
        let question = askForWord(in: world)
        guard check.isAsking else { return nil }
        // A device has one report under way; another one takes its place.
        if request.hasReport { heldRequests.removeAll(where: \.hasReport) }
        heldRequests.append(request)
        return question
    }

    /// Decides about the requests that waited for the tenant's answer.
    private mutating func releaseRequests(in world: SessionSurroundings) -> [SessionAction] {
        let held = heldRequests
        heldRequests = []
        return held.flatMap { request -> [SessionAction] in
            switch request.body {
            case .submitOperations(let frame)?: submit(frame, in: world)
            case .keepParameters(let frame)?: keep(frame, in: world)
            case .confirmReport(let report)?: received(report, in: world)
            default: []
            }
        }
    }

    // MARK: What waits for a word

    /// Keeps what was read until the tenant was asked. As much as can be under way: a page and a repeat of each
    /// channel, and the device's unanswered questions.
    mutating func park(_ read: Parked.Read, in world: SessionSurroundings) -> [SessionAction] {
        parked.append(Parked(read: read, since: world.now))
        return askForWord(in: world)
    }

    /// Gives on what waited, out or back by the rules of hand-out. What a new word is older than waits for the next
    /// one, which is asked for at once: one question serves all that waits, and new data never restarts it.
    private mutating func resume(in world: SessionSurroundings) -> [SessionAction] {
        let waited = parked
        var later: [Parked] = []
        if check.isFresh, case .valid(let askedAt) = check.word { later = waited.filter { $0.since > askedAt } }
        parked = later
        let next = later.isEmpty ? [] : askForWord(in: world)
        let actions = waited.dropLast(later.count).reduce(next) { $0 + given($1.read, in: world) }
        guard !later.isEmpty, next.isEmpty else { return actions }
        // Nobody is left to be asked, and this word is none for it.
        parked = []
        check.isFresh = false
        return later.reduce(actions) { $0 + given($1.read, in: world) }
    }

    /// The user was switched: what waited goes back; who asked for it gets an answer.
    mutating func dropParked(in world: SessionSurroundings) -> [SessionAction] { resume(in: world) }

    private mutating func given(_ read: Parked.Read, in world: SessionSurroundings) -> [SessionAction] {
        switch read {
        case .page(let reply, let channelID): fetched(reply, channelID: channelID, in: world)
        case .history(let reply, let id): historyRead(reply, of: id, in: world)
        case .summary(let reply, let id): summaryRead(reply, of: id, in: world)
        case .resend(let channelID, let oplogID, let repeats):
            resendRecorded(channelID: channelID, oplogID: oplogID, repeats: repeats, in: world)
        }
    }
}

extension Mss_Device_V1_Packet {
    fileprivate var hasReport: Bool { if case .confirmReport? = body { true } else { false } }
    var hasOperations: Bool { if case .submitOperations? = body { true } else { false } }
}
