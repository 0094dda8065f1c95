import Foundation
import SwiftProtobuf
package import SyncModel

// Conversions of device operations.

extension SyncModel.DeviceOperation {
    /// Converts an operation of the bus.
    package init(bus: Mss_Bus_V1_DeviceOperation) {
        self.init(
            id: bus.operationID, component: bus.component, key: bus.entityKey, name: bus.name, body: [UInt8](bus.body),
            children: bus.children.map(Self.init(bus:)), submittedAt: WallTime(milliseconds: bus.submittedAtMs))
    }

    /// The operation as a bus message.
    package var bus: Mss_Bus_V1_DeviceOperation {
        .with {
            $0.operationID = id
            $0.component = component
            $0.entityKey = key
            $0.name = name
            $0.body = Data(body)
            $0.children = children.map(\.bus)
            $0.submittedAtMs = submittedAt.milliseconds
        }
    }

    /// The children as one value for the store; empty without children.
    package var storedChildren: [UInt8] {
        if children.isEmpty { return [] }
        let list = Mss_Bus_V1_DeviceOperationList.with { $0.operations = children.map(\.bus) }
        // Serialization fails only for proto2 required fields and oversized messages, which our schemas do not have.
        return (try? list.serializedBytes()) ?? []
    }

    /// Reads `storedChildren`; empty for other bytes.
    package static func children(stored: [UInt8]) -> [DeviceOperation] {
        ((try? Mss_Bus_V1_DeviceOperationList(serializedBytes: stored))?.operations ?? []).map(Self.init(bus:))
    }
}

extension SyncModel.OperationRefusal {
    /// Converts a refusal of the bus.
    package init(bus: Mss_Bus_V1_OperationRefusal) {
        self.init(operationID: bus.operationID, code: bus.code, message: bus.message)
    }

    /// The refusal as a bus message.
    package var bus: Mss_Bus_V1_OperationRefusal {
        .with {
            $0.operationID = operationID
            $0.code = code
            $0.message = message
        }
    }
}

extension Mss_Bus_V1_RelayCommand {
    /// The actor of the command.
    package var by: OperationActor {
        get { OperationActor(actor, from: source) }
        set { (actor, source) = (newValue.name, newValue.source) }
    }
}
