import AMQP
import BusMessages
import Credentials
import Foundation
import Logging
import Metrics
import ServiceKit
import ServiceLifecycle
import SwiftProtobuf
import SyncModel
import Synchronization
import TenantCalls

/// Consumes the gateways' requests for verdicts, calls the tenants, and replies. It acknowledges a body after the
/// replies to all its commands.
final class SessionCheckConsumer: Service, Sendable {
    /// The address of a reply, and the time of the request.
    private struct Requester {
        let body: CommandBody
        let correlation: UInt64
        let since = ContinuousClock.now
    }

    private typealias Calls = InFlightCalls<Requester>

    /// The reason why a tenant cannot be called.
    private struct Refusal: Error {
        let reason: String
    }

    /// Bodies that RabbitMQ delivers before their acknowledgement.
    static let prefetch: UInt16 = 256
    /// The largest number of bodies that are acknowledged only after their replies; another validator gets them if this
    /// one dies. Further bodies are acknowledged at once, because slow tenants must not keep requests for other tenants
    /// at the broker. If this process dies, the gateways repeat those requests.
    static let unacknowledgedMax = Int(prefetch) / 2

    private let queue: WorkQueue<AMQPDelivery>
    private let bus: MessageBus
    private let directory: ControlDirectory
    private let endpoint: SessionEndpoint
    private let logger: Logger
    private let calls: Mutex<Calls>
    private let unacknowledged = Mutex(0)
    private let keys: OpenedKeys
    /// The last refused endpoint of each instance; each is logged once.
    private let refused = Mutex<[InstanceID: String]>([:])
    private let callTime = Timer(label: "mss_validator_call")
    private let verdicts = VerdictCounters()

    /// - Parameter queue: receives the deliveries of the validate queue, with a prefetch of `prefetch`.
    init(
        queue: WorkQueue<AMQPDelivery>, control: ControlConnection, endpoint: SessionEndpoint, keys: OpenedKeys,
        tenantConcurrency: Int, logger: Logger
    ) {
        self.queue = queue
        bus = control.bus
        directory = control.directory
        self.endpoint = endpoint
        self.keys = keys
        self.logger = logger
        calls = Mutex(
            Calls(
                concurrency: tenantConcurrency, runningMax: TenantConnections.callsMax(openFiles: OpenFiles.limit),
                waitLimit: CommandQueue.validate.timeout))
    }

    /// On shutdown, the process first stops consuming. Then it replies to every request that it has received.
    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { [bus, queue] in
                defer { queue.finish() }
                try await bus.run()
            }
            while true {
                let deliveries = await queue.dequeue(upTo: Int(Self.prefetch))
                if deliveries.isEmpty { break }
                for request in deliveries.flatMap(accept) { group.addTask { await self.call(request) } }
            }
        }
        endpoint.close()
    }

    /// Adds the commands of a body; returns the calls to make now.
    private func accept(_ delivery: AMQPDelivery) -> [Calls.Request] {
        let commands = Mss_Bus_V1_ValidateCommands.elements(of: delivery.body)
        guard let commands, let replyTo = delivery.replyTo else {
            logger.error("a command body could not be read", metadata: ["bytes": "\(delivery.body.count)"])
            bus.acknowledge([delivery], as: .rejected)
            return []
        }
        // The caller of a late request has given up, so a call of the tenant would be useless.
        guard !commands.isEmpty, delivery.receivedAt + CommandQueue.validate.timeout > .now else {
            bus.acknowledge([delivery], as: .accepted)
            return []
        }
        let awaitsAcknowledgement = unacknowledged.withLock { unacknowledged in
            if unacknowledged < Self.unacknowledgedMax { unacknowledged += 1 } else { return false }
            return true
        }
        if !awaitsAcknowledgement { bus.acknowledge([delivery], as: .accepted) }
        let body = CommandBody(
            delivery: delivery, replyTo: replyTo, commands: commands.count, awaitsAcknowledgement: awaitsAcknowledgement
        )
        return commands.flatMap { accept($0, of: body) }
    }

    private func accept(_ command: Mss_Bus_V1_ValidateCommand, of body: CommandBody) -> [Calls.Request] {
        let request = Calls.Request(
            instanceID: InstanceID(command.instanceID), userID: UserID(command.userID),
            sessionID: SessionID(command.sessionID))
        let requester = Requester(body: body, correlation: command.correlation)
        do throws(Refusal) {
            _ = try callableInstance(request.instanceID)
            return perform(calls.withLock { $0.add(request, requester, now: .now) }, askedAt: .now)
        } catch {
            answer(requester, .unknown(error.reason), askedAt: .now)
            return []
        }
    }

    /// Makes one call, then the calls that waited for its end.
    private func call(_ first: Calls.Request) async {
        var next: Calls.Request? = first
        while let request = next {
            let askedAt = ContinuousClock.now
            let outcome = await check(request)
            if case .invalid(let reason) = outcome { announceInvalid(request, reason) }
            let now = ContinuousClock.now
            callTime.recordNanoseconds((now - askedAt).wholeMilliseconds * 1_000_000)
            let actions = calls.withLock { $0.ended(request, outcome, now: now) }
            next = perform(actions, askedAt: askedAt).first
        }
    }

    private func check(_ request: Calls.Request) async -> CheckOutcome {
        let (instance, signer): (Instance, RequestSigner?)
        do throws(Refusal) {
            instance = try callableInstance(request.instanceID)
            signer = try self.signer(of: instance)
        } catch {
            return .unknown(error.reason)
        }
        let outcome = await endpoint.check(
            instance.validatorURL, as: instance.validatorForm, instanceID: request.instanceID, userID: request.userID,
            sessionID: request.sessionID.text, signer: signer)
        switch outcome {
        case .valid, .invalid: break
        case .unknown(let reason), .noAnswer(let reason):
            logger.debug(
                "a call of a tenant gave no verdict",
                metadata: ["instanceId": "\(request.instanceID)", "reason": "\(reason)"])
        }
        return outcome
    }

    /// The signer of the call; nil if the instance has no key for it. The older of two keys signs, so that a tenant can
    /// install the new key before the old one is revoked.
    private func signer(of instance: Instance) throws(Refusal) -> RequestSigner? {
        guard let key = instance.keys(for: .callout).first else { return nil }
        guard let secret = keys.secret(of: key, instance.id) else {
            throw Refusal(reason: "the key that signs calls cannot be opened; see MSS_SEALING_KEYS")
        }
        return RequestSigner(keyID: key.id, secret: secret)
    }

    /// Notifies every gateway of an invalid verdict, because the session can be in use at gateways that did not request
    /// it now.
    private func announceInvalid(_ request: Calls.Request, _ reason: String) {
        bus.notifyEveryGateway(
            .with {
                $0.sessionInvalid.instanceID = request.instanceID.text
                $0.sessionInvalid.userID = request.userID.text
                $0.sessionInvalid.sessionDigest = Data(SessionDigest.of(request.sessionID.text))
                $0.sessionInvalid.reason = reason
            })
    }

    /// Sends the replies of a call that began at `askedAt`; returns the calls to make next.
    private func perform(_ actions: [Calls.Action], askedAt: ContinuousClock.Instant) -> [Calls.Request] {
        var requests: [Calls.Request] = []
        for action in actions {
            switch action {
            case .call(let request): requests.append(request)
            case .answer(let requesters, let outcome):
                for requester in requesters { answer(requester, outcome, askedAt: askedAt) }
            }
        }
        return requests
    }

    private func answer(_ requester: Requester, _ outcome: CheckOutcome, askedAt: ContinuousClock.Instant) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = requester.correlation
        reply.validate = Mss_Bus_V1_ValidateReply(outcome, joinedAfter: requester.since - askedAt)
        verdicts.count(outcome)
        bus.reply(reply, to: requester.body.replyTo, through: CommandQueue.validate.answers)
        guard requester.body.recordReply(), requester.body.awaitsAcknowledgement else { return }
        unacknowledged.withLock { $0 -= 1 }
        bus.acknowledge([requester.body.delivery], as: .accepted)
    }

    /// The instance, if its tenant may be called. The caller checks this before it adds a request, because a missing
    /// setting is not a failure of the tenant.
    private func callableInstance(_ id: InstanceID) throws(Refusal) -> Instance {
        guard let instance = directory.instance(id), instance.isEnabled else {
            throw Refusal(reason: "the instance is not known or not enabled")
        }
        do throws(CalloutRefusal) {
            try endpoint.permit(instance.validatorURL)
        } catch {
            if refused.withLock({ $0.updateValue(instance.validatorURL, forKey: id) }) != instance.validatorURL {
                logger.warning(
                    "a tenant's endpoint is not called: see deploy/manual/Callouts.md",
                    metadata: ["instanceId": "\(id)", "reason": "\(error)"])
            }
            throw Refusal(reason: "the tenant's endpoint is not allowed")
        }
        return instance
    }
}

extension Mss_Bus_V1_ValidateReply {
    /// The reply for an outcome.
    ///
    /// - Parameter joinedAfter: the time that the call had been in flight when the request arrived; negative if the
    ///   call began later.
    init(_ outcome: CheckOutcome, joinedAfter: Duration) {
        self.init()
        // Rounded up: a verdict must never count as younger than it is.
        joinedAfterMs = joinedAfter.wholeMilliseconds + (joinedAfter > .zero ? 1 : 0)
        switch outcome {
        case .valid:
            verdict = .valid
        case .invalid(let reason):
            verdict = .invalid
            self.reason = reason
        case .unknown(let reason), .noAnswer(let reason):
            verdict = .unknown
            self.reason = reason
        }
    }
}

/// A consumed body, and the number of its commands without a reply.
private final class CommandBody: Sendable {
    let delivery: AMQPDelivery
    let replyTo: String
    /// Whether RabbitMQ still waits for the acknowledgement of this body.
    let awaitsAcknowledgement: Bool
    private let open: Mutex<Int>

    /// - Parameter commands: at least one.
    init(delivery: AMQPDelivery, replyTo: String, commands: Int, awaitsAcknowledgement: Bool) {
        self.delivery = delivery
        self.replyTo = replyTo
        self.awaitsAcknowledgement = awaitsAcknowledgement
        open = Mutex(commands)
    }

    /// Records the reply to one command.
    ///
    /// - Returns: true for the last command; the caller then acknowledges the body.
    func recordReply() -> Bool {
        open.withLock { open in
            open -= 1
            return open == 0
        }
    }
}

/// Counts the replies to requests, by verdict.
private struct VerdictCounters: Sendable {
    private let valid = Counter(label: "mss_validator_answers", dimensions: [("verdict", "valid")])
    private let invalid = Counter(label: "mss_validator_answers", dimensions: [("verdict", "invalid")])
    private let unknown = Counter(label: "mss_validator_answers", dimensions: [("verdict", "unknown")])
    /// Replies that were not valid, for the console: process reports contain only figures without labels.
    private let failures = Counter(label: "mss_validator_failures")

    /// Counts one reply.
    func count(_ outcome: CheckOutcome) {
        if case .valid = outcome {} else { failures.increment() }
        switch outcome {
        case .valid: valid.increment()
        case .invalid: invalid.increment()
        case .unknown, .noAnswer: unknown.increment()
        }
    }
}
