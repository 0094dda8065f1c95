import BackendCalls
import BusMessages
import Credentials
import Logging
import NIOHTTP1
import ServiceKit
import SyncModel

/// Decides in whose name a call is made, and whether it may be: the one place that every call of the API passes
/// (spec H9, C8; reliability SEC6, SEC7).
struct RequestAdmission: Sendable {
    /// Uses a nonce; false when it was used before.
    typealias Claim =
        @Sendable (_ nonce: [UInt8], _ keyID: String, _ expiresAt: WallTime) async throws(BusError) -> Bool

    /// Who was let in, and how it stands with its limit of calls.
    struct Admitted: Sendable {
        /// Nil: a call without a key that names no instance.
        var caller: APICaller?
        var rate: RateNote?
    }

    private let directory: any CallerLookup
    private let check: SignatureCheck
    private let claim: Claim
    private let now: @Sendable () -> WallTime
    private let logger: Logger
    private let rates = CallRates()

    init(
        directory: any CallerLookup, keys: OpenedKeys, claim: @escaping Claim,
        now: @escaping @Sendable () -> WallTime,
        logger: Logger
    ) {
        self.directory = directory
        check = SignatureCheck(directory: directory, keys: keys)
        self.claim = claim
        self.now = now
        self.logger = logger
    }

    /// Uses nonces over the bus.
    init(directory: any CallerLookup, keys: OpenedKeys, bus: MessageBus, logger: Logger) {
        self.init(
            directory: directory, keys: keys,
            claim: { nonce, keyID, expiresAt throws(BusError) in
                try await bus.claimNonce(nonce, of: keyID, expiresAt: expiresAt)
            }, now: { WallTime.now }, logger: logger)
    }

    /// What the head alone decides, before the body is read: whether the call is signed where it must be.
    func headers(of head: HTTPRequestHead, _ query: RequestQuery) throws(HeadRefusal) -> SignatureHeaders? {
        guard directory.isCurrent else { throw HeadRefusal(answer: Self.notCurrent) }
        if let headers = try SignatureHeaders(head) { return headers }
        _ = try unsignedInstance(query)
        return nil
    }

    /// The instance that a call without signature is for, where that is allowed; nil: it names none.
    private func unsignedInstance(_ query: RequestQuery) throws(HeadRefusal) -> Instance? {
        let instance = query["instanceId"].flatMap { directory.instance(InstanceID($0)) }
        guard instance?.requiresSignature != true else {
            throw HeadRefusal(
                answer: .refusal(
                    .unauthorized,
                    "This instance takes signed calls only; send X-MSS-Key, -Timestamp, -Nonce and -Signature as"
                        + " /openapi.json says."))
        }
        return instance
    }

    /// Lets the call in, or says why not. What is checked first tells least: only who holds the secret learns more
    /// than that the signature is wrong.
    func admit(
        _ head: HTTPRequestHead, _ headers: SignatureHeaders?, _ query: RequestQuery, body: [UInt8]
    ) async throws(HeadRefusal) -> Admitted {
        // A body takes its time: what holds now decides, not what held when the head came.
        guard directory.isCurrent else { throw HeadRefusal(answer: Self.notCurrent) }
        guard let headers else {
            let caller = try unsignedInstance(query).map { APICaller(instanceID: $0.id, keyID: "", limits: $0.limits) }
            return Admitted(caller: caller, rate: try count(caller))
        }
        let caller = try signer(of: head, headers, body)
        guard abs(now().milliseconds - headers.timestamp.milliseconds) <= RequestSignature.skew.wholeMilliseconds else {
            throw Self.denied(
                .unauthorized,
                "X-MSS-Timestamp is more than \(RequestSignature.skew.components.seconds) s from this service's time,"
                    + " \(now().milliseconds); set your clock and sign anew.")
        }
        guard query["instanceId"].map({ InstanceID($0) }) == caller.instanceID else {
            logger.warning(
                "A key was used for another instance",
                metadata: ["key": "\(headers.keyID)", "instance": "\(caller.instanceID)"])
            throw Self.denied(.forbidden, "The key is of another instance than instanceId; use a key of this one.")
        }
        let rate = try count(caller)
        try await use(headers, of: caller, rate)
        return Admitted(caller: caller, rate: rate)
    }

    private func signer(
        of head: HTTPRequestHead, _ headers: SignatureHeaders, _ body: [UInt8]
    ) throws(HeadRefusal) -> APICaller {
        let signature = RequestSignature(
            method: head.method.rawValue, target: head.target, body: body, timestamp: headers.timestampText,
            nonce: headers.nonceText, keyID: headers.keyID)
        switch check.outcome(of: headers, over: signature) {
        case .signed(let key, let instanceID):
            return APICaller(instanceID: instanceID, keyID: key.id, limits: key.limits)
        case .wrong:
            throw Self.denied(
                .unauthorized,
                "The signature is wrong, or there is no such key; compare what you sign with what /openapi.json says.")
        case .unreadable:
            logger.error(
                "A key's secret cannot be opened; is MSS_SEALING_KEYS derived from the oplog writers' master keys?")
            throw HeadRefusal(answer: .unavailable("Signatures cannot be checked now; repeat the call."))
        }
    }

    private func count(_ caller: APICaller?) throws(HeadRefusal) -> RateNote? {
        guard let caller, let verdict = rates.take(caller) else { return nil }
        guard let wait = verdict.waitSeconds else { return verdict.note }
        var answer = HTTPAnswer.denied(
            .rateLimited,
            "More than \(verdict.note.limit) calls in a second; repeat this one after the time in Retry-After.")
        answer.content.retryAfterSeconds = wait
        answer.rate = verdict.note
        throw HeadRefusal(answer: answer)
    }

    /// Uses the nonce. The store keeps it as long as any clock that is right within `RequestSignature.skew` takes its
    /// timestamp, and afterwards refuses it whoever asks, however wrong that one's clock may be.
    private func use(
        _ headers: SignatureHeaders, of caller: APICaller, _ rate: RateNote?
    ) async throws(HeadRefusal) {
        var (answer, rate) = (Self.replay, rate)
        do throws(BusError) {
            let expiresAt = headers.timestamp + RequestSignature.skew * 2
            if try await claim(headers.nonce, headers.keyID, expiresAt) { return }
            // Whoever has seen a call can send it again; that must not use up what the key's owner may call.
            rate = rates.giveBack(caller)
        } catch {
            answer = .unavailable("The store did not answer; nothing was attempted. Sign the call anew and repeat it.")
        }
        answer.rate = rate
        throw HeadRefusal(answer: answer)
    }

    private static func denied(_ code: ResultCode, _ detail: String) -> HeadRefusal {
        HeadRefusal(answer: .denied(code, detail))
    }

    private static let replay = HTTPAnswer.denied(
        .unauthorized, "REPLAY: this nonce was used before; sign every call anew, also a repeated one.")
    private static let notCurrent = HTTPAnswer.unavailable(
        "The service is starting, or cannot find out who may call; repeat the call.")
}
