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

/// Takes the gateways' questions off the bus, asks tenants, and answers; settles a body once all of it is answered.
final class SessionCheckConsumer: Service, Sendable {
    /// Who asked, under which number, and when the question came.
    private struct Asker {
        let body: CommandBody
        let correlation: UInt64
        let since = ContinuousClock.now
    }

    private typealias Calls = InFlightCalls<Asker>

    /// Why a tenant cannot be asked at all.
    private struct Refusal: Error {
        let reason: String
    }

    /// Bodies that the broker hands us ahead of their settlement.
    static let prefetch: UInt16 = 256
    /// Bodies that are settled only when they are answered, so that another validator gets them when this one dies.
    /// Further ones are settled as they come: slow tenants must not keep the questions about others at the broker. If
    /// this process dies then, their gateways ask again.
    static let heldMax = Int(prefetch) / 2

    private let queue: WorkQueue<AMQPDelivery>
    private let bus: MessageBus
    private let directory: ControlDirectory
    private let endpoint: SessionEndpoint
    private let logger: Logger
    private let calls: Mutex<Calls>
    private let held = Mutex(0)
    private let keys: OpenedKeys
    /// The endpoint of each instance that an operator has been told about last.
    private let refused = Mutex<[InstanceID: String]>([:])
    private let callTime = Timer(label: "mss_validator_call")
    private let verdicts = VerdictCounters()

    /// - Parameter queue: gets the deliveries of the validate queue, with `prefetch` of them in hand.
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
                patience: CommandQueue.validate.timeout))
    }

    /// On shutdown consuming ends first, then every question in hand is answered.
    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { [bus, queue] in
                defer { queue.finish() }
                try await bus.run()
            }
            while true {
                let deliveries = await queue.take(upTo: Int(Self.prefetch))
                if deliveries.isEmpty { break }
                for question in deliveries.flatMap(accept) { group.addTask { await self.call(question) } }
            }
        }
        endpoint.close()
    }

    /// Takes the commands of a body; returns the questions that go out now.
    private func accept(_ delivery: AMQPDelivery) -> [Calls.Question] {
        let commands = Mss_Bus_V1_ValidateCommands.elements(of: delivery.body)
        guard let commands, let replyTo = delivery.replyTo else {
            logger.error("a command body could not be read", metadata: ["bytes": "\(delivery.body.count)"])
            bus.settle([delivery], as: .rejected)
            return []
        }
        // Nobody waits for the answer to an old question, and the tenant need not hear it.
        guard !commands.isEmpty, delivery.receivedAt + CommandQueue.validate.timeout > .now else {
            bus.settle([delivery], as: .accepted)
            return []
        }
        let isHeld = held.withLock { held in
            if held < Self.heldMax { held += 1 } else { return false }
            return true
        }
        if !isHeld { bus.settle([delivery], as: .accepted) }
        let body = CommandBody(delivery: delivery, replyTo: replyTo, commands: commands.count, isHeld: isHeld)
        return commands.flatMap { accept($0, of: body) }
    }

    private func accept(_ command: Mss_Bus_V1_ValidateCommand, of body: CommandBody) -> [Calls.Question] {
        let question = Calls.Question(
            instanceID: InstanceID(command.instanceID), userID: UserID(command.userID),
            sessionID: SessionID(command.sessionID))
        let asker = Asker(body: body, correlation: command.correlation)
        do throws(Refusal) {
            _ = try callableInstance(question.instanceID)
            return perform(calls.withLock { $0.ask(question, asker, now: .now) }, askedAt: .now)
        } catch {
            answer(asker, .unknown(error.reason), askedAt: .now)
            return []
        }
    }

    /// Asks one question, then those that waited for its place.
    private func call(_ first: Calls.Question) async {
        var next: Calls.Question? = first
        while let question = next {
            let askedAt = ContinuousClock.now
            let outcome = await ask(question)
            if case .invalid(let reason) = outcome { announce(question, reason) }
            let now = ContinuousClock.now
            callTime.recordNanoseconds((now - askedAt).wholeMilliseconds * 1_000_000)
            let actions = calls.withLock { $0.ended(question, outcome, now: now) }
            next = perform(actions, askedAt: askedAt).first
        }
    }

    private func ask(_ question: Calls.Question) async -> CheckOutcome {
        let (instance, signer): (Instance, RequestSigner?)
        do throws(Refusal) {
            instance = try callableInstance(question.instanceID)
            signer = try self.signer(of: instance)
        } catch {
            return .unknown(error.reason)
        }
        let outcome = await endpoint.check(
            instance.validatorURL, as: instance.validatorForm, instanceID: question.instanceID, userID: question.userID,
            sessionID: question.sessionID.text, signer: signer)
        switch outcome {
        case .valid, .invalid: break
        case .unknown(let reason), .noAnswer(let reason):
            logger.debug(
                "a tenant gave no verdict", metadata: ["instanceId": "\(question.instanceID)", "reason": "\(reason)"])
        }
        return outcome
    }

    /// What signs the call; nil where the instance has no key for it. Of two keys the older one signs, so that a tenant
    /// can learn the new one before the old one is revoked.
    private func signer(of instance: Instance) throws(Refusal) -> RequestSigner? {
        guard let key = instance.keys(for: .callout).first else { return nil }
        guard let secret = keys.secret(of: key, instance.id) else {
            throw Refusal(reason: "the key that signs calls cannot be opened; see MSS_SEALING_KEYS")
        }
        return RequestSigner(keyID: key.id, secret: secret)
    }

    /// The session may be in use at gateways that did not ask now.
    private func announce(_ question: Calls.Question, _ reason: String) {
        bus.notifyEveryGateway(
            .with {
                $0.sessionInvalid.instanceID = question.instanceID.text
                $0.sessionInvalid.userID = question.userID.text
                $0.sessionInvalid.sessionDigest = Data(SessionDigest.of(question.sessionID.text))
                $0.sessionInvalid.reason = reason
            })
    }

    /// Sends answers of a call that began at an instant; returns the questions to ask.
    private func perform(_ actions: [Calls.Action], askedAt: ContinuousClock.Instant) -> [Calls.Question] {
        var questions: [Calls.Question] = []
        for action in actions {
            switch action {
            case .call(let question): questions.append(question)
            case .answer(let askers, let outcome):
                for asker in askers { answer(asker, outcome, askedAt: askedAt) }
            }
        }
        return questions
    }

    private func answer(_ asker: Asker, _ outcome: CheckOutcome, askedAt: ContinuousClock.Instant) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = asker.correlation
        reply.validate = Mss_Bus_V1_ValidateReply(outcome, joinedAfter: asker.since - askedAt)
        verdicts.count(outcome)
        bus.reply(reply, to: asker.body.replyTo, through: CommandQueue.validate.answers)
        guard asker.body.answeredOne(), asker.body.isHeld else { return }
        held.withLock { $0 -= 1 }
        bus.settle([asker.body.delivery], as: .accepted)
    }

    /// The instance whose tenant may be asked. Looked at before a question counts for anything: a setting that is
    /// missing is no fault of the tenant's.
    private func callableInstance(_ id: InstanceID) throws(Refusal) -> Instance {
        guard let instance = directory.instance(id), instance.isEnabled else {
            throw Refusal(reason: "the instance is not known or not enabled")
        }
        do throws(CalloutRefusal) {
            try endpoint.permit(instance.validatorURL)
        } catch {
            if refused.withLock({ $0.updateValue(instance.validatorURL, forKey: id) }) != instance.validatorURL {
                logger.warning(
                    "a tenant's endpoint is not called: see Callouts in deploy/README.md",
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
    /// - Parameter joinedAfter: how long the call had been under way when the question came; below 0: it began later.
    init(_ outcome: CheckOutcome, joinedAfter: Duration) {
        self.init()
        // Rounded up: a verdict must never be taken for younger than it is.
        if joinedAfter > .zero { joinedAfterMs = joinedAfter.wholeMilliseconds + 1 }
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
