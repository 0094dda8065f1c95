import BusMessages
import ServiceKit
import SwiftProtobuf
import SyncModel

// Operations of devices, which a relay stores.
extension GatewayRuntime {
    /// Sends a frame of operations to a relay, which replies when they are stored.
    func submit(_ submission: OperationSubmission, for session: SessionHandle) {
        bus.request(.submit, as: Mss_Bus_V1_SubmitCommands.self) { number in
            .with {
                $0.correlation = number
                $0.instanceID = submission.instanceID.text
                $0.deviceID = submission.deviceID.text
                $0.userID = submission.userID.text
                $0.sessionID = submission.sessionID
                $0.operations = submission.operations.map(\.bus)
            }
        } completion: { [self] result in
            var answer: Mss_Bus_V1_SubmitReply?
            if case .success(let reply) = result, case .submit(let taken)? = reply.body { answer = taken }
            notify([session], .operationsAnswered(answer, number: submission.number))
        }
    }
}
