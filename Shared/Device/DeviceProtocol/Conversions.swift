import Foundation
import SwiftProtobuf
package import SyncModel

extension SyncModel.ChannelKind {
    /// The value is nil for a kind that this build does not know.
    package init?(wire: Mss_Device_V1_ChannelKind) {
        self.init(rawValue: Int16(truncatingIfNeeded: wire.rawValue))
    }

    /// The kind as a wire value.
    package var wire: Mss_Device_V1_ChannelKind { Mss_Device_V1_ChannelKind(rawValue: Int(rawValue)) ?? .user }
}

extension SyncModel.DeviceOperation {
    /// Converts an operation of a frame.
    package init(wire: Mss_Device_V1_DeviceOperation) {
        self.init(
            id: wire.operationID, component: wire.component, key: wire.entityKey, name: wire.name,
            body: [UInt8](wire.body), children: wire.children.map(Self.init(wire:)),
            submittedAt: WallTime(milliseconds: wire.submittedAtMs))
    }

    /// The operation as a wire message.
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
