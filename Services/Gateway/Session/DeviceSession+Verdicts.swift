import BusMessages
import Credentials
import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Requests for verdicts, and their consequences (V4–V6, H7).
extension DeviceSession {
    // MARK: Replies

    /// Processes a validator's reply or its absence. A reply for an earlier bind is ignored.
    ///
    /// - Parameter askedAt: when the request was sent.
    mutating func validated(
        _ reply: Mss_Bus_V1_ValidateReply?, bindNumber: UInt32, askedAt: ContinuousClock.Instant,
        in context: SessionContext
    ) -> [SessionAction] {
        guard bindNumber == identity.bindNumber else { return [] }
        var actions: [SessionAction] = []
        switch eligibility.check.answered(reply, sentAt: askedAt, now: context.now, random: context.functions.random())
        {
        case .nothing: break
        case .tooOld:
            let next = eligibility.validate(in: context)
            // No request is possible: the known verdict decides about waiting data.
            if !next.isEmpty { return next }
        case .verdict:
            // A registration that claims ownership also carries the verdict to the store.
            let claims = claimOwnership(in: context)
            actions = publishVerdict(reply?.reason ?? "", in: context) + claims
            eligibility.check.isFresh = true
        }
        defer { eligibility.check.isFresh = false }
        return actions + releaseAll(in: context)
    }

    /// Processes an invalid verdict that some gateway received: checked data is not sent any more (V6).
    mutating func invalidated(
        _ userID: UserID, digest: [UInt8], reason: String, in context: SessionContext
    ) -> [SessionAction] {
        guard identity.userID == userID, identity.sessionDigest == digest else { return [] }
        let isNews = eligibility.check.verdict != .invalid
        // A repeated notice also rejects verdicts that were requested after the first one.
        eligibility.check.end(at: context.now)
        return isNews ? verdictEnded(reason, in: context) : []
    }

    /// Processes a revocation (H7).
    ///
    /// - Parameter digest: of the session id; empty: every session of the user.
    mutating func revoked(_ userID: UserID, digest: [UInt8], in context: SessionContext) -> [SessionAction] {
        guard identity.userID == userID, digest.isEmpty || digest == identity.sessionDigest else { return [] }
        eligibility.check.revoke(at: context.now)
        return verdictEnded(Self.revocation, in: context)
    }

    /// Applies a revocation in the reply to a registration.
    mutating func applyRevocation(
        _ reply: Mss_Bus_V1_SessionReply, in context: SessionContext
    ) -> [SessionAction] {
        guard reply.hasRevokedAgoMs else { return [] }
        let ends = eligibility.check.applyRevocation(
            reply.revocationNumber, ago: .milliseconds(reply.revokedAgoMs), now: context.now,
            isNewBind: registration.opensBind)
        if ends { return verdictEnded(Self.revocation, in: context) }
        return eligibility.check.verdict == .unknown ? eligibility.requestVerdict(in: context) : []
    }

    private static let revocation = "the session was ended; sign in again"

    private mutating func verdictEnded(_ reason: String, in context: SessionContext) -> [SessionAction] {
        publishVerdict(reason, in: context) + releaseAll(in: context)
    }

    /// Sends the current session state to the device and the store.
    private mutating func publishVerdict(_ reason: String, in context: SessionContext) -> [SessionAction] {
        let isValid = eligibility.check.verdict != .invalid
        var actions: [SessionAction] = []
        if eligibility.check.isNewToDevice(isValid) {
            let state = Mss_Device_V1_Packet.sessionState(
                isValid: isValid, reason: isValid ? "" : reason, bindNumber: identity.bindNumber)
            if registration.opensBind { verdicts.deferState(state) } else { actions.append(.answer(state)) }
        }
        guard registration.connectionEpoch > 0, !registration.isInFlight else {
            // The registration in flight does not carry it. The store is updated after its reply.
            verdicts.oweStoreUpdate()
            return actions
        }
        return actions + eligibility.updateStore(in: context)
    }

    // MARK: Waiting data and requests

    /// Keeps data until the next verdict.
    mutating func park(_ read: VerdictQueue.Parked.Read, in context: SessionContext) -> [SessionAction] {
        verdicts.park(read, at: context.now)
        return eligibility.requestVerdict(in: context)
    }

    /// Processes everything that waited for a verdict, and reads on.
    private mutating func releaseAll(in context: SessionContext) -> [SessionAction] {
        let requests = verdicts.dequeueRequests().flatMap { repeatRequest($0, in: context) }
        return requests + releaseParked(in: context) + readOn(in: context)
    }

    /// Releases or returns parked data by the rules. Data that waits for the next verdict has it requested at once.
    mutating func releaseParked(in context: SessionContext) -> [SessionAction] {
        var freshSince: ContinuousClock.Instant?
        if eligibility.check.isFresh, case .valid(let askedAt) = eligibility.check.verdict { freshSince = askedAt }
        let (decided, later) = verdicts.dequeue(upto: freshSince)
        let next = later.isEmpty ? [] : eligibility.requestVerdict(in: context)
        let actions = decided.reduce(next) { $0 + release($1, in: context) }
        guard !later.isEmpty, next.isEmpty else { return actions }
        // No request is possible, and this verdict is too old for this data.
        verdicts.removeParked()
        eligibility.check.isFresh = false
        return later.reduce(actions) { $0 + release($1, in: context) }
    }

    private mutating func release(_ read: VerdictQueue.Parked.Read, in context: SessionContext) -> [SessionAction] {
        switch read {
        case .page(let reply, let channelID): fetched(reply, channelID: channelID, in: context)
        case .history(let reply, let id): historyRead(reply, of: id, in: context)
        case .summary(let reply, let id): summaryRead(reply, of: id, in: context)
        case .resend(let channelID, let oplogID, let repeats):
            resendRecorded(channelID: channelID, oplogID: oplogID, repeats: repeats, in: context)
        }
    }
}
