import Credentials
import DeviceProtocol
import Foundation
import SwiftProtobuf

/// Device secrets, for an instance that binds device ids to secrets.
enum GatewaySecretCases {
    private static let rule = "Device secrets"

    static let all: [GatewayCase] = [
        GatewayCase("secret/another-one", rule) { target in
            try await expectRefused(target, showing: Data(RandomBytes.make(32)))
        },
        GatewayCase("secret/none", rule) { target in try await expectRefused(target, showing: Data()) },
        GatewayCase("secret/too-short", rule) { target in
            let connection = try await target.connect()
            connection.send(target.secretConnect(target.fresh(), Data(RandomBytes.make(15))))
            try await connection.expectClose(5000)
        },
        GatewayCase("secret/the-same-again", rule) { target in
            let (identity, secret) = (target.fresh(), Data(RandomBytes.make(32)))
            for _ in 0..<2 {
                let connection = try await target.connect()
                connection.send(target.secretConnect(identity, secret))
                try await connection.expect(.opens)
            }
        },
    ]

    /// Checks that another device with the same id is refused, and that the connection of the first device is
    /// unaffected.
    private static func expectRefused(_ target: GatewayTarget, showing secret: Data) async throws {
        let identity = target.fresh()
        let rightful = try await target.connect()
        rightful.send(target.secretConnect(identity, Data(RandomBytes.make(32))))
        try await rightful.expect(.opens)
        let other = try await target.connect()
        other.send(target.secretConnect(identity, secret))
        try await other.expectClose(5004)
        rightful.send(.with { $0.ping.number = 7 })
        try await rightful.expect(.pong)
    }
}

extension GatewayTarget {
    /// A `Connect` to the instance that binds device ids.
    fileprivate func secretConnect(_ identity: DeviceIdentity, _ secret: Data) -> Mss_Device_V1_Packet {
        var packet = identity.connect
        packet.connect.instanceID = bindingInstance ?? ""
        packet.connect.deviceSecret = secret
        return packet
    }
}
