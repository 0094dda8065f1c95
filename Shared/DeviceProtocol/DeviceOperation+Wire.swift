import Foundation
import SwiftProtobuf
package import SyncModel

extension SyncModel.DeviceOperation {
    /// Reads an operation off a frame.
    package init(wire: Mss_Device_V1_DeviceOperation) {
        self.init(
            id: wire.operationID, component: wire.component, key: wire.entityKey, name: wire.name,
            body: [UInt8](wire.body), children: wire.children.map(Self.init(wire:)),
            submittedAt: WallTime(milliseconds: wire.submittedAtMs))
    }

    /// The operation as frames have it.
    package var wire: Mss_Device_V1_DeviceOperation {
        .with {
            $0.operationID = id
            $0.component = component
            $0.entityKey = key
            $0.name = name
            $0.body = Data(body)
            $0.children = children.map(\.wire)
            $0.submittedAtMs = submittedAt.milliseconds
        }
    }
}
