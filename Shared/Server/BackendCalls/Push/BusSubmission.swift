package import BusMessages
import Foundation
package import ServiceKit
import SyncModel

/// Submits pushes to the oplog writers over the bus. It repeats those without a clear reply once.
///
/// The repeat is safe because the writer finds the first push by its thirdMsgId. A push without a clear second reply
/// has the outcome `unknown`.
package struct BusSubmission: PushSubmitting {
    /// Sends commands in one body, which keeps their order. Waits for each reply, at most for the queue's time-out.
    package typealias Send =
        @Sendable (_ commands: [Mss_Bus_V1_AppendCommand]) async -> [Result<Mss_Bus_V1_Reply, BusError>]

    /// Maximum number of times that a push is sent.
    static let attempts = 2

    private let send: Send

    /// Submits through any sender, for example in tests.
    package init(send: @escaping Send) { self.send = send }

    /// Submits through the bus.
    package init(bus: MessageBus) {
        send = { commands in
            await bus.requests(.append, as: Mss_Bus_V1_AppendCommands.self, count: commands.count) { index, number in
                var command = commands[index]
                command.correlation = number
                return command
            }
        }
    }

    package func submit(_ pushes: [AcceptedPush]) async -> [PushOutcome] {
        let commands = pushes.map(Self.command)
        var outcomes = [PushOutcome?](repeating: nil, count: pushes.count)
        var mayBeStored = [Bool](repeating: false, count: pushes.count)
        for _ in 0..<Self.attempts {
            let open = outcomes.indices.filter { outcomes[$0] == nil }
            if open.isEmpty { break }
            for (index, result) in zip(open, await send(open.map { commands[$0] })) {
                switch result {
                case .success(let reply):
                    outcomes[index] = Self.outcome(of: reply, to: pushes[index].request)
                    mayBeStored[index] = true
                case .failure(let error):
                    switch error.code {
                    case .unavailable: outcomes[index] = mayBeStored[index] ? .unknown : .notAttempted
                    // Also for a failure in the writer: the broker can still redeliver the command to another writer.
                    case .unanswered, .failed: mayBeStored[index] = true
                    }
                }
            }
        }
        return zip(outcomes, mayBeStored).map { outcome, mayBeStored in
            outcome ?? (mayBeStored ? .unknown : .notAttempted)
        }
    }

    /// The append command of a push. The sender sets the correlation.
    static func command(_ accepted: AcceptedPush) -> Mss_Bus_V1_AppendCommand {
        let (push, kind) = (accepted.request, accepted.kind)
        let target = TargetAddress(
            instanceID: push.instanceID, kind: kind, target: kind.isGlobal ? "" : push.linkToken)
        var oplog = Mss_Bus_V1_Oplog()
        oplog.thirdMessageID = push.thirdMessageID.text
        oplog.payload = Data(push.payload)
        oplog.binary = push.isBinary
        oplog.operatingSystem = Mss_Bus_V1_OperatingSystem(push.targeting.operatingSystem)
        oplog.minimumVersion = push.targeting.minimumVersion ?? ""
        oplog.maximumVersion = push.targeting.maximumVersion ?? ""
        oplog.validUntilMs = push.validUntil?.milliseconds ?? 0
        oplog.attributes = push.attributes.text
        oplog.conversation = push.conversation
        var command = Mss_Bus_V1_AppendCommand()
        command.target = target.bus
        command.bizType = push.bizType.text
        command.oplog = oplog
        return command
    }

    /// The outcome of a reply; nil for a reply that this build does not understand.
    static func outcome(of reply: Mss_Bus_V1_Reply, to push: PushRequest) -> PushOutcome? {
        guard case .append(let append)? = reply.body else { return nil }
        switch append.outcome {
        case .stored:
            let validity = StoredValidity(
                asked: push.validUntil, validUntil: WallTime(milliseconds: append.validUntilMs),
                storedAt: WallTime(milliseconds: append.createdAtMs))
            return .stored(OplogID(append.oplogID), online: append.online, validity: validity)
        case .duplicate: return .duplicate(OplogID(append.oplogID))
        case .refused: return .refused(append.detail)
        case .noConfiguration: return .noConfiguration
        case .uncertain: return .unknown
        case .unknown, .UNRECOGNIZED: return nil
        }
    }
}

/// Submits pushes and records the duration of those that are traced.
package struct TracedSubmission: PushSubmitting {
    private let submission: any PushSubmitting
    private let tracer: PushTracer

    /// - Parameter tracer: nil: no push is traced.
    package static func around(_ submission: any PushSubmitting, tracer: PushTracer?) -> any PushSubmitting {
        tracer.map { TracedSubmission(submission: submission, tracer: $0) } ?? submission
    }

    package func submit(_ pushes: [AcceptedPush]) async -> [PushOutcome] {
        let start = PushTracer.now
        let outcomes = await submission.submit(pushes)
        for (push, outcome) in zip(pushes.lazy.map(\.request), outcomes) {
            // A repeat would record the same step again.
            guard case .stored(let oplogID, let online, _) = outcome,
                let trace = tracer.trace(of: push.instanceID, push.bizType, to: push.linkToken, push.thirdMessageID)
            else { continue }
            tracer.record(
                .push, of: trace, since: start,
                [
                    "mss.instance": push.instanceID.text, "mss.biz_type": push.bizType.text,
                    "mss.oplog_id": "\(oplogID.value)", "mss.online": "\(online)",
                ])
        }
        return outcomes
    }
}
