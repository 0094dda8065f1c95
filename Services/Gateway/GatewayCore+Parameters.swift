import BusMessages
import ServiceKit
import SwiftProtobuf
import SyncModel

// Values that users keep on the server.
extension GatewayCore {
    /// Has values kept, which is answered once they are on the service's disk.
    func keep(
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
            tell([session], .parametersKept(isKept, number: number))
        }
    }
}
