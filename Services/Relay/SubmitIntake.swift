import BusMessages
import Credentials
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Decides which operations of a frame are accepted and which are refused for good; pure except for the keys that seal
/// user sessions.
struct SubmitIntake: Sendable {
    /// The result of the check of a frame.
    struct Checked: Sendable {
        var accepted: [DeviceOperationStore.SubmittedOperation] = []
        var refusals: [OperationRefusal] = []
    }

    let ring: SealingRing
    /// Finds an instance, enabled or not.
    let instance: @Sendable (InstanceID) -> Instance?
    /// Whether operators of the instance can request logs of devices.
    let asksForLogs: @Sendable (InstanceID) -> Bool

    func check(_ command: Mss_Bus_V1_SubmitCommand) -> Checked {
        let operations = command.operations.map(DeviceOperation.init(bus:))
        let id = InstanceID(command.instanceID)
        let known = instance(id).flatMap { $0.isEnabled ? $0 : nil }
        let hasEndpoint = known.map { !$0.relayURL.isEmpty } ?? false
        let acceptsLogs = known != nil && asksForLogs(id)
        let (deviceID, userID) = (DeviceID(command.deviceID), UserID(command.userID))
        let session = ring.seal(text: command.sessionID, of: .session(id, deviceID, userID)) ?? []
        var checked = Checked()
        for operation in operations {
            let isLogPart = BizType(operation.component) == ReservedSyncID.diagnosis
            guard isLogPart ? acceptsLogs : hasEndpoint else {
                checked.refusals.append(
                    OperationRefusal(
                        operationID: operation.id, code: OperationRefusalCode.noEndpoint,
                        message: "this app has no endpoint for operations (mssctl instance set --relay-url)"))
                continue
            }
            if let fault = operation.fault {
                checked.refusals.append(
                    OperationRefusal(
                        operationID: operation.id, code: OperationRefusalCode.malformed, message: fault))
                continue
            }
            checked.accepted.append(
                DeviceOperationStore.SubmittedOperation(
                    instanceID: id, deviceID: deviceID, userID: userID, session: session, operation: operation,
                    children: operation.storedChildren))
        }
        return checked
    }
}

extension KeyAddress {
    /// The address to which the user session of a device is sealed while an operation waits.
    static func session(_ instanceID: InstanceID, _ deviceID: DeviceID, _ userID: UserID) -> KeyAddress {
        KeyAddress(
            instanceID: instanceID, keyID: "session \(deviceID.text.utf8.count) \(deviceID.text) \(userID.text)",
            purpose: .callout)
    }
}
