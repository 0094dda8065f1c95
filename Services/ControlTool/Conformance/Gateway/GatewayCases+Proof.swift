import Credentials
import DeviceProtocol
import Foundation
import MobileSync
import ServiceKit
import SwiftProtobuf
import SyncModel

/// Signed connects and device secrets, on instances that the kit is told of.
extension GatewayCases {
    private static let signedRule = "Signed connects"
    private static let secretRule = "Device secrets"

    /// For an instance that asks for signatures.
    static let signed: [Case] =
        [
            Case("signed/accepted", signedRule) { target in
                let connection = try await target.connect()
                connection.send(try target.signedConnect())
                try await expect(.opens, on: connection)
            },
            Case("signed/bind-while-it-is-checked", signedRule) { target in
                let connection = try await target.connect()
                let bind = target.fresh().bindFrame(2)
                connection.sendBytes(FrameBytes.of([try target.signedConnect { $0.clearBind() }, bind]))
                try await expect(.binds, on: connection)
            },
            Case("signed/missing", signedRule) { target in
                try await expectRefused(try target.signedConnect(change: { $0.clearSignature() }), target)
            },
            Case("signed/unknown-key", signedRule) { target in
                try await expectRefused(try target.signedConnect(change: { $0.signature.keyID += "x" }), target)
            },
            Case("signed/sent-twice", signedRule) { target in
                let packet = try target.signedConnect()
                let first = try await target.connect()
                first.send(packet)
                try await expect(.opens, on: first)
                try await expectRefused(packet, target)
            },
            Case("signed/clock-that-is-off", signedRule) { target in
                let packet = try target.signedConnect(at: .now + .seconds(-86_400))
                let connection = try await target.connect()
                connection.send(packet)
                try await expectClose(1002, on: connection)
                let told = connection.packets.last?.close.serverTimeMs ?? 0
                try Mismatch.unless(told > 0, "server_time_ms", seen: connection.summary)
                let again = try await target.connect()
                again.send(try target.signedConnect(at: WallTime(milliseconds: told)))
                try await expect(.opens, on: again)
            },
        ]
        + changes.map { name, change in
            Case("signed/changed-\(name)", signedRule) { target in
                try await expectRefused(try target.signedConnect(change: change), target)
            }
        }

    /// Changes of what was signed, by name.
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
        try await expectClose(5003, on: connection)
    }

    /// For an instance that binds device ids to secrets.
    static let secrets: [Case] = [
        Case("secret/another-one", secretRule) { target in
            try await expectRefused(target, showing: Data(RandomBytes.make(32)))
        },
        Case("secret/none", secretRule) { target in try await expectRefused(target, showing: Data()) },
        Case("secret/too-short", secretRule) { target in
            let connection = try await target.connect()
            connection.send(target.secretConnect(target.fresh(), Data(RandomBytes.make(15))))
            try await expectClose(5000, on: connection)
        },
        Case("secret/the-same-again", secretRule) { target in
            let (identity, secret) = (target.fresh(), Data(RandomBytes.make(32)))
            for _ in 0..<2 {
                let connection = try await target.connect()
                connection.send(target.secretConnect(identity, secret))
                try await expect(.opens, on: connection)
            }
        },
    ]

    /// Another device with the id is refused, and the rightful one hears nothing of it.
    private static func expectRefused(_ target: GatewayTarget, showing secret: Data) async throws {
        let identity = target.fresh()
        let rightful = try await target.connect()
        rightful.send(target.secretConnect(identity, Data(RandomBytes.make(32))))
        try await expect(.opens, on: rightful)
        let other = try await target.connect()
        other.send(target.secretConnect(identity, secret))
        try await expectClose(5004, on: other)
        try await expect(.pong, on: rightful, sending: .with { $0.ping.number = 7 })
    }

    private static func expect(
        _ reaction: GatewayReaction, on connection: FrameConnection, sending packet: Mss_Device_V1_Packet
    ) async throws {
        connection.send(packet)
        try await expect(reaction, on: connection)
    }
}

extension GatewayTarget {
    /// A Connect to the signed instance.
    ///
    /// - Parameters:
    ///   - more: changes it before it is signed.
    ///   - change: changes it afterwards.
    fileprivate func signedConnect(
        at time: WallTime = .now, _ more: (inout Mss_Device_V1_Connect) -> Void = { _ in },
        change: (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) throws -> Mss_Device_V1_Packet {
        guard let signed else { throw NotSupported("--signed-instance is not given") }
        let identity = DeviceIdentity.fresh(instance: signed.instance)
        var packet = identity.connect
        packet.connect.bind = identity.bind(1)
        packet.connect.deviceSecret = Data(RandomBytes.make(32))
        more(&packet.connect)
        packet = signed.signer.signed(packet, now: time)
        change(&packet.connect)
        return packet
    }

    /// A Connect to the instance that binds ids.
    fileprivate func secretConnect(_ identity: DeviceIdentity, _ secret: Data) -> Mss_Device_V1_Packet {
        var packet = identity.connect
        packet.connect.instanceID = bindingInstance ?? ""
        packet.connect.deviceSecret = secret
        return packet
    }
}
