import DeviceProtocol
import Foundation
import SwiftProtobuf

/// The ids of a scripted device.
struct DeviceIdentity: Sendable {
    var instance: String
    var device: String
    var store: String
    var user: String
    let session = "conformance"

    /// A new device and a new user.
    static func fresh(instance: String) -> DeviceIdentity {
        let mark = UUID().uuidString.prefix(13)
        return DeviceIdentity(instance: instance, device: "cf-d-\(mark)", store: "cf-s-\(mark)", user: "cf-u-\(mark)")
    }

    /// Another device of the same user.
    func otherDevice() -> DeviceIdentity {
        var other = DeviceIdentity.fresh(instance: instance)
        other.user = user
        return other
    }

    /// A `Connect` frame without a bind.
    var connect: Mss_Device_V1_Packet {
        .with {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = instance
            $0.connect.deviceID = device
            $0.connect.storeID = store
            $0.connect.osName = "iOS"
            $0.connect.appVersion = "1.0"
        }
    }

    /// A bind of the user.
    func bind(_ number: UInt32, points: [Mss_Device_V1_SyncPoint] = []) -> Mss_Device_V1_Bind {
        .with {
            $0.bindNumber = number
            $0.userID = user
            $0.sessionID = session
            $0.syncPoints = points
            $0.requestedByApp = true
        }
    }

    /// A `Bind` frame of the user.
    func bindFrame(_ number: UInt32) -> Mss_Device_V1_Packet { .with { $0.bind = bind(number) } }
}
