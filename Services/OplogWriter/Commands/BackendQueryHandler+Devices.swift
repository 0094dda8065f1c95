import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

// One device: its channels with their positions, and the end of its connection (C1, C7).
extension BackendQueryHandler {
    /// A device and its channels.
    func device(
        _ request: Mss_Bus_V1_DeviceRequest, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let (deviceID, instanceID) = (DeviceID(request.deviceID), InstanceID(request.instanceID))
        let row = try connection.run(ConnectedDeviceStore.device(deviceID, of: instanceID), within: Self.limit)
        let channels = ConnectedDeviceStore.channels(
            of: deviceID, instanceID, userID: row?.userID, isConnected: row != nil)
        let found = try connection.run(channels, within: Self.limit)
        return .with {
            $0.device = .with {
                if let row { $0.device = row.bus }
                $0.channels = found.map(\.bus)
            }
        }
    }

    /// Sends a notice to the gateway of the device to end its connection. The reply does not wait for the end. If the
    /// notice is lost, the device stays connected, and the next query shows that.
    func disconnect(
        _ request: Mss_Bus_V1_DisconnectDevice, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let query = ConnectedDeviceStore.disconnect(
            DeviceID(request.deviceID), of: InstanceID(request.instanceID), by: actor)
        let gatewayID = try connection.run(query, within: Self.limit)
        if let gatewayID {
            logger.info(
                "device disconnected", metadata: ["instanceId": "\(request.instanceID)", "actor": "\(actor.name)"])
            bus.notify(gateway: gatewayID, .with { $0.disconnect = request })
        }
        return .with { $0.disconnect.connected = gatewayID != nil }
    }
}
