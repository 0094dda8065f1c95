import Credentials
import DeviceProtocol
import Foundation
import MobileSync
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Signed connects, for an instance that requires signatures.
enum GatewaySignatureCases {
    private static let rule = "Signed connects"

    static let all: [GatewayCase] =
        [
            GatewayCase("signed/accepted", rule) { target in
                let connection = try await target.connect()
                connection.send(try target.signedConnect())
                try await connection.expect(.opens)
            },
            GatewayCase("signed/bind-while-it-is-checked", rule) { target in
                let connection = try await target.connect()
                let bind = target.fresh().bindFrame(2)
                connection.sendBytes(FrameBytes.of([try target.signedConnect { $0.clearBind() }, bind]))
                try await connection.expect(.binds)
            },
            GatewayCase("signed/missing", rule) { target in
                try await expectRefused(try target.signedConnect(change: { $0.clearSignature() }), target)
            },
            GatewayCase("signed/unknown-key", rule) { target in
                try await expectRefused(try target.signedConnect(change: { $0.signature.keyID += "x" }), target)
            },
            GatewayCase("signed/sent-twice", rule) { target in
                let packet = try target.signedConnect()
                let first = try await target.connect()
                first.send(packet)
                try await first.expect(.opens)
                try await expectRefused(packet, target)
            },
            GatewayCase("signed/clock-that-is-off", rule) { target in
                let packet = try target.signedConnect(at: .now + .seconds(-86_400))
                let connection = try await target.connect()
                connection.send(packet)
                try await connection.expectClose(1002)
                let told = connection.packets.last?.close.serverTimeMs ?? 0
                try Mismatch.unless(told > 0, "server_time_ms", seen: connection.summary)
                let again = try await target.connect()
                again.send(try target.signedConnect(at: WallTime(milliseconds: told)))
                try await again.expect(.opens)
            },
        ]
        + changes.map { name, change in
            GatewayCase("signed/changed-\(name)", rule) { target in
                try await expectRefused(try target.signedConnect(change: change), target)
            }
        }

    /// Changes to the signed fields, by name.
    private static let changes: [(String, @Sendable (inout Mss_Device_V1_Connect) -> Void)] = [
        ("device-id", { $0.deviceID += "x" }), ("store-id", { $0.storeID += "x" }),
        ("user-id", { $0.bind.userID += "x" }), ("session-id", { $0.bind.sessionID += "x" }),
        ("os-name", { $0.osName += "x" }), ("background", { $0.background.toggle() }),
        ("suspended", { $0.suspended.append("x") }), ("sync-points", { $0.syncPoints = [.with { $0.oplogID = 1 }] }),
        ("device-secret", { $0.deviceSecret.append(1) }), ("nonce", { $0.signature.nonce[0] ^= 1 }),
        ("push-token", { $0.pushToken.token = "x" }), ("timestamp", { $0.signature.timestampMs += 1 }),
        ("mac", { $0.signature.mac[0] ^= 1 }),
    ]

    private static func expectRefused(_ packet: Mss_Device_V1_Packet, _ target: GatewayTarget) async throws {
        let connection = try await target.connect()
        connection.send(packet)
        try await connection.expectClose(5003)
    }
}

extension GatewayTarget {
    /// A `Connect` to the signed instance.
    ///
    /// - Parameters:
    /// - more: change before the signature.
    /// - change: change after the signature.
    fileprivate func signedConnect(
        at time: WallTime = .now, _ more: (inout Mss_Device_V1_Connect) -> Void = { _ in },
        change: (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) throws -> Mss_Device_V1_Packet {
        guard let signed else { throw NotSupported("--signed-instance is missing") }
        let identity = DeviceIdentity.fresh(instance: signed.instance)
        var packet = identity.connect
        packet.connect.bind = identity.bind(1)
        packet.connect.deviceSecret = Data(RandomBytes.make(32))
        more(&packet.connect)
        packet = signed.signer.signed(packet, now: time)
        change(&packet.connect)
        return packet
    }
}
