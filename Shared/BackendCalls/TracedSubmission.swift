package import ServiceKit
package import SyncModel

/// Submits pushes and notes, of those that are traced, how long that took.
package struct TracedSubmission: PushSubmitting {
    private let submission: any PushSubmitting
    private let tracer: PushTracer

    /// - Parameter tracer: nil: nothing is traced.
    package static func around(_ submission: any PushSubmitting, tracer: PushTracer?) -> any PushSubmitting {
        tracer.map { TracedSubmission(submission: submission, tracer: $0) } ?? submission
    }

    package func submit(_ pushes: [PushRequest], configuration: SyncConfiguration) async -> [PushOutcome] {
        let start = PushTracer.now
        let outcomes = await submission.submit(pushes, configuration: configuration)
        for (push, outcome) in zip(pushes, outcomes) {
            // A repeat would be the same step once more.
            guard case .stored(let oplogID, let online, _) = outcome,
                let trace = tracer.trace(of: push.instanceID, push.bizType, to: push.linkToken, push.thirdMessageID)
            else { continue }
            tracer.note(
                .push, of: trace, since: start,
                [
                    "mss.instance": push.instanceID.text, "mss.biz_type": push.bizType.text,
                    "mss.oplog_id": "\(oplogID.value)", "mss.online": "\(online)",
                ])
        }
        return outcomes
    }
}
