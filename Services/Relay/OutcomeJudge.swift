import Logging
import SyncModel
import SyncStore

/// Decides the answer to store for the outcome of a call, and logs when a tenant begins or ceases to fail.
struct OutcomeJudge {
    private let rule: RetryRule
    private let logger: Logger
    /// The last failure of each instance that was logged.
    private var failures: [InstanceID: String] = [:]

    init(rule: RetryRule, logger: Logger) {
        self.rule = rule
        self.logger = logger
    }

    /// The answer to store for a call's outcome.
    ///
    /// - Parameter random: in 0..<1; spreads the retries of calls that failed together.
    mutating func answer(
        to stored: DeviceOperationStore.StoredOperation, _ outcome: CallOutcome, random: Double
    ) -> DeviceOperationStore.Answer {
        var answer = DeviceOperationStore.Answer(
            instanceID: stored.instanceID, number: stored.number, attempt: stored.attempts, outcome: nil, code: 200,
            message: "", requestID: stored.callID,
            imported: nil, pause: .zero, resultGroup: "")
        switch outcome {
        case .accepted(let message, let imported):
            (answer.outcome, answer.message, answer.imported) = (.accepted, message, imported)
            report(failure: "", of: stored)
        case .refused(let code, let message):
            (answer.outcome, answer.code, answer.message) = (.refused, code, message)
            report(failure: "", of: stored)
        case .again(let code, let reason, let named, _):
            report(failure: reason, of: stored)
            (answer.code, answer.message) = (code, String(reason.prefix(Limits.operationMessageUnits)))
            if let pause = rule.pause(
                after: stored.attempts, waited: stored.waited, named: named, random: random)
            {
                answer.pause = pause
            } else {
                answer.outcome = .dead
                answer.code = Int(OperationRefusalCode.givenUp)
                answer.message = "given up after \(stored.attempts) attempts: \(answer.message)"
            }
        }
        return answer
    }

    /// Logs a failure of an operation's instance when it differs from the last one.
    ///
    /// - Parameter failure: empty: the call succeeded.
    private mutating func report(failure: String, of stored: DeviceOperationStore.StoredOperation) {
        let instanceID = stored.instanceID
        guard !stored.isOfDiagnosis else {
            if !failure.isEmpty {
                logger.warning("a device log part was not stored", metadata: ["reason": "\(failure)"])
            }
            return
        }
        guard failures[instanceID, default: ""] != failure else { return }
        failures[instanceID] = failure.isEmpty ? nil : failure
        failure.isEmpty
            ? logger.info("a tenant executes operations again", metadata: ["instanceId": "\(instanceID)"])
            : logger.warning(
                "a tenant does not execute operations: see deploy/manual/DeviceOperations.md",
                metadata: ["instanceId": "\(instanceID)", "reason": "\(failure)"])
    }
}

extension DeviceOperationStore.StoredOperation {
    /// Whether the operation belongs to a log that an operator requested.
    var isOfDiagnosis: Bool { BizType(operation.component) == ReservedSyncID.diagnosis }
}
