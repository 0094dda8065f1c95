import BusMessages
import ServiceKit
import SwiftProtobuf
import SyncModel

// Parameter values that the server keeps for users.
extension GatewayRuntime {
    /// Stores a user's values. The session receives the outcome.
    func keepParameters(
        _ parameters: [DeviceParameter], of userID: UserID, number: UInt32, for session: SessionHandle,
        instanceID: InstanceID?
    ) {
        bus.request(.session, as: Mss_Bus_V1_SessionCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.keepParameters.instanceID = instanceID?.text ?? ""
                $0.keepParameters.userID = userID.text
                $0.keepParameters.parameters = parameters.map(\.bus)
            }
        } completion: { [self] result in
            var isKept = false
            if case .success(let reply) = result, case .session? = reply.body { isKept = true }
            notify([session], .parametersKept(isKept, number: number))
        }
    }
}
