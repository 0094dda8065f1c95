import BusMessages
import Credentials
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// What of a frame is taken, and what is refused for good; pure but for the keys that seal sessions.
struct SubmitIntake: Sendable {
    /// A frame, looked at.
    struct Checked: Sendable {
        var takings: [DeviceOperationStore.Taking] = []
        var refusals: [OperationRefusal] = []
    }

    let ring: SealingRing
    /// An instance, enabled or not.
    let instance: @Sendable (InstanceID) -> Instance?
    /// Whether its operators ask devices for their logs.
    let asksForLogs: @Sendable (InstanceID) -> Bool

    func check(_ command: Mss_Bus_V1_SubmitCommand) -> Checked {
        let operations = command.operations.map(DeviceOperation.init(bus:))
        let id = InstanceID(command.instanceID)
        let known = instance(id).flatMap { $0.isEnabled ? $0 : nil }
        let hasEndpoint = known.map { !$0.relayURL.isEmpty } ?? false
        let takesLogs = known != nil && asksForLogs(id)
        let (deviceID, userID) = (DeviceID(command.deviceID), UserID(command.userID))
        let session = ring.seal(text: command.sessionID, of: .session(id, deviceID, userID)) ?? []
        var checked = Checked()
        for operation in operations {
            let isOfLog = BizType(operation.component) == ReservedSyncID.diagnosis
            guard isOfLog ? takesLogs : hasEndpoint else {
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
            checked.takings.append(
                DeviceOperationStore.Taking(
                    instanceID: id, deviceID: deviceID, userID: userID, session: session, operation: operation,
                    children: operation.storedChildren))
        }
        return checked
    }
}

extension KeyAddress {
    /// What the session of a user on a device is sealed for while an operation waits.
    static func session(_ instanceID: InstanceID, _ deviceID: DeviceID, _ userID: UserID) -> KeyAddress {
        KeyAddress(
            instanceID: instanceID, keyID: "session \(deviceID.text.utf8.count) \(deviceID.text) \(userID.text)",
            purpose: .callout)
    }
}
