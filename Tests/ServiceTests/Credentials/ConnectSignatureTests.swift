import Credentials
import Crypto
import DeviceProtocol
import Foundation
import SwiftProtobuf
import TestSupport
import Testing

@Suite("SEC9: the signature of a Connect") struct ConnectSignatureTests {
    private static let key = SymmetricKey(data: (0..<32).map { UInt8($0) })

    /// The signed example in DeviceProtocol.md.
    static let connect = Mss_Device_V1_Connect.with {
        $0.protocolVersion = 1
        $0.instanceID = "demo_app"
        $0.deviceID = "d1"
        $0.storeID = "s1"
        $0.osName = "iOS"
        $0.appVersion = "2.0"
        $0.bind.bindNumber = 1
        $0.bind.userID = "u1"
        $0.bind.sessionID = "x"
        $0.bind.syncPoints = [point("UCHAT", 4)]
        $0.signature.keyID = "k1"
        $0.signature.timestampMs = 1_700_000_000_000
        $0.signature.nonce = Data((0..<16).map { UInt8($0) })
        $0.deviceSecret = Data((0x20..<0x40).map { UInt8($0) })
    }

    static func point(
        _ bizType: String, _ oplogID: Int64, kind: Mss_Device_V1_ChannelKind = .user
    ) -> Mss_Device_V1_SyncPoint {
        .with {
            $0.kind = kind
            $0.bizType = bizType
            $0.oplogID = oplogID
        }
    }

    /// One change of each signed field, with its name.
    static let changes: [(String, @Sendable (inout Mss_Device_V1_Connect) -> Void)] = [
        ("protocol_version", { $0.protocolVersion = 2 }), ("instance_id", { $0.instanceID += "x" }),
        ("device_id", { $0.deviceID = "d2" }), ("store_id", { $0.storeID = "s2" }),
        ("os_name", { $0.osName = "ios" }), ("os_version", { $0.osVersion = "1" }),
        ("app_version", { $0.appVersion = "2.1" }), ("sdk_version", { $0.sdkVersion = "1" }),
        ("background", { $0.background = true }), ("sync_points", { $0.syncPoints = [point("B", 1, kind: .device)] }),
        ("bind", { $0.clearBind() }), ("bind_number", { $0.bind.bindNumber = 2 }),
        ("user_id", { $0.bind.userID = "u2" }), ("session_id", { $0.bind.sessionID = "y" }),
        ("bind's sync_points", { $0.bind.syncPoints[0].oplogID = 5 }), ("simple", { $0.simple = true }),
        ("requested_by_app", { $0.bind.requestedByApp = true }), ("ownership_epoch", { $0.bind.ownershipEpoch = 1 }),
        ("suspended", { $0.suspended = ["B"] }), ("device_secret", { $0.deviceSecret[0] ^= 1 }),
        ("connection_number", { $0.connectionNumber = 1 }),
        ("key_id", { $0.signature.keyID = "k2" }), ("timestamp_ms", { $0.signature.timestampMs += 1 }),
        ("nonce", { $0.signature.nonce[0] ^= 1 }), ("mac", { $0.signature.mac[0] ^= 1 }),
    ]

    @Test("SEC9: the signed example of DeviceProtocol.md is correct to the byte") func goldenBytes() throws {
        let file = ProjectFolder.url.appending(path: "Shared/Device/DeviceProtocol/DeviceProtocol.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let rows = text.components(separatedBy: "\n").drop { !$0.hasPrefix("| Parts | Bytes |") }.dropFirst(2)
            .prefix { $0.hasPrefix("|") }
        let written = rows.map { row in row.components(separatedBy: "|")[2].filter(\.isHexDigit) }.joined()
        #expect(HexText.of(ConnectSignature.text(of: Self.connect.signedParts)) == written)
        let mac = HexText.of(ConnectSignature.mac(of: Self.connect.signedParts, by: Self.key))
        let digits = text.components(separatedBy: "mac (4), 32 bytes")[1].components(separatedBy: "7a 20")[0]
        #expect(digits.filter(\.isHexDigit) == mac)
    }

    @Test("SEC9: every field of a Connect is signed", arguments: changes.dropLast().map(\.0))
    func coversEveryField(name: String) throws {
        let change = try #require(Self.changes.first { $0.0 == name }).1
        var other = Self.connect
        change(&other)
        #expect(ConnectSignature.text(of: other.signedParts) != ConnectSignature.text(of: Self.connect.signedParts))
    }

    @Test("SEC10: a moved boundary between fields changes the signed text") func injective() {
        var left = Self.connect
        var right = Self.connect
        (left.deviceID, left.storeID) = ("ab", "c")
        (right.deviceID, right.storeID) = ("a", "bc")
        #expect(ConnectSignature.text(of: left.signedParts) != ConnectSignature.text(of: right.signedParts))
        (left.deviceID, left.storeID) = (right.deviceID, right.storeID)
        (left.suspended, left.deviceSecret) = (["B"], Data())
        (right.suspended, right.deviceSecret) = ([], Data("B".utf8))
        #expect(ConnectSignature.text(of: left.signedParts) != ConnectSignature.text(of: right.signedParts))
    }
}
