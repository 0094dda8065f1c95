import BackendCalls
import BusMessages
import Credentials
import Logging
import NIOHTTP1
import ServiceKit
import SyncModel

/// Identifies the caller of an API call and admits or refuses the call. Every call passes through it
/// (H9, C8; SEC6, SEC7).
struct RequestAdmission: Sendable {
    /// Claims a nonce; false when it was used before.
    typealias Claim =
        @Sendable (_ nonce: [UInt8], _ keyID: String, _ expiresAt: WallTime) async throws(BusError) -> Bool

    /// An admitted caller, with its limit of calls.
    struct Admitted: Sendable {
        /// A nil value means: the call has no key and names no known instance.
        var caller: APICaller?
        var rate: RateLimitStatus?
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

    /// Claims nonces over the bus.
    init(directory: any CallerLookup, keys: OpenedKeys, bus: MessageBus, logger: Logger) {
        self.init(
            directory: directory, keys: keys,
            claim: { nonce, keyID, expiresAt throws(BusError) in
                try await bus.claimNonce(nonce, of: keyID, expiresAt: expiresAt)
            }, now: { WallTime.now }, logger: logger)
    }

    /// Checks before the body is read that a call is signed where its instance requires it.
    func headers(of head: HTTPRequestHead, _ query: RequestQuery) throws(EarlyRefusal) -> SignatureHeaders? {
        guard directory.isCurrent else { throw EarlyRefusal(answer: Self.notCurrent) }
        if let headers = try SignatureHeaders(head) { return headers }
        _ = try unsignedInstance(query)
        return nil
    }

    /// The instance of an unsigned call; nil when the call names no known instance.
    ///
    /// - Throws: 401 when the instance requires signatures.
    private func unsignedInstance(_ query: RequestQuery) throws(EarlyRefusal) -> Instance? {
        let instance = query["instanceId"].flatMap { directory.instance(InstanceID($0)) }
        guard instance?.requiresSignature != true else {
            throw EarlyRefusal(
                answer: .refusal(
                    .unauthorized,
                    "This instance accepts signed calls only; send X-MSS-Key, -Timestamp, -Nonce and -Signature as"
                        + " /openapi.json says."))
        }
        return instance
    }

    /// Admits the call or refuses it.
    ///
    /// The signature is checked first, so a caller without the secret learns only that the signature is wrong.
    func admit(
        _ head: HTTPRequestHead, _ headers: SignatureHeaders?, _ query: RequestQuery, body: [UInt8]
    ) async throws(EarlyRefusal) -> Admitted {
        // The control data can have expired while the body arrived, so it is checked again.
        guard directory.isCurrent else { throw EarlyRefusal(answer: Self.notCurrent) }
        guard let headers else {
            let caller = try unsignedInstance(query).map { APICaller(instanceID: $0.id, keyID: "", limits: $0.limits) }
            return Admitted(caller: caller, rate: try charge(caller))
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
            throw Self.denied(.forbidden, "The key belongs to another instance than instanceId; use a key of this one.")
        }
        let rate = try charge(caller)
        try await consumeNonce(headers, of: caller, rate)
        return Admitted(caller: caller, rate: rate)
    }

    private func signer(
        of head: HTTPRequestHead, _ headers: SignatureHeaders, _ body: [UInt8]
    ) throws(EarlyRefusal) -> APICaller {
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
                "A key's secret cannot be opened; derive MSS_SEALING_KEYS from the oplog writers' master keys")
            throw EarlyRefusal(answer: .unavailable("Signatures cannot be checked now; repeat the call."))
        }
    }

    private func charge(_ caller: APICaller?) throws(EarlyRefusal) -> RateLimitStatus? {
        guard let caller, let outcome = rates.charge(caller) else { return nil }
        guard let wait = outcome.waitSeconds else { return outcome.status }
        var answer = HTTPAnswer.denied(
            .rateLimited,
            "More than \(outcome.status.limit) calls in a second; repeat this call after the time in Retry-After.")
        answer.content.retryAfterSeconds = wait
        answer.rate = outcome.status
        throw EarlyRefusal(answer: answer)
    }

    /// Claims the call's nonce. The store keeps a nonce until every clock within `RequestSignature.skew` refuses its
    /// timestamp. After that time the store refuses the nonce too, so an ingest with a wrong clock cannot accept it.
    private func consumeNonce(
        _ headers: SignatureHeaders, of caller: APICaller, _ rate: RateLimitStatus?
    ) async throws(EarlyRefusal) {
        var (answer, rate) = (Self.replay, rate)
        do throws(BusError) {
            let expiresAt = headers.timestamp + RequestSignature.skew * 2
            if try await claim(headers.nonce, headers.keyID, expiresAt) { return }
            // A stranger can repeat a recorded call; the repeat must not count against the key's limit.
            rate = rates.refund(caller)
        } catch {
            answer = .unavailable("The store did not answer; nothing was attempted. Sign the call anew and repeat it.")
        }
        answer.rate = rate
        throw EarlyRefusal(answer: answer)
    }

    private static func denied(_ code: ResultCode, _ detail: String) -> EarlyRefusal {
        EarlyRefusal(answer: .denied(code, detail))
    }

    private static let replay = HTTPAnswer.denied(
        .unauthorized, "REPLAY: this nonce was used before; sign every call anew, also a repeated one.")
    private static let notCurrent = HTTPAnswer.unavailable(
        "The service is starting, or its list of callers may be out of date; repeat the call.")
}

/// The caller of a call: a key of an instance, or the instance itself for unsigned calls.
struct APICaller: Hashable, Sendable {
    var instanceID: InstanceID
    /// Empty: the call is unsigned.
    var keyID: String
    var limits: KeyLimits

    /// Identifies a caller for its limits. It excludes the limits themselves, because they can change.
    struct Account: Hashable, Sendable {
        let instanceID: InstanceID
        let keyID: String
    }

    /// The account that the caller's calls and pushes count for.
    var account: Account { Account(instanceID: instanceID, keyID: keyID) }
}

/// The control data that admission reads.
protocol CallerLookup: ConfigurationLookup {
    /// False while this process can be missing a change; admission then refuses every call.
    var isCurrent: Bool { get }
    /// The instance that has a live backend key with this id; nil when there is none.
    func instance(ofBackendKey keyID: String) -> Instance?
    /// The id of a live backend key, another one each time; empty when there is none.
    var someBackendKey: String { get }
}

extension ControlDirectory: CallerLookup {}
