import Credentials
import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf

/// Signed connects and device secrets.
extension ClientCases {
    private static let secretRule = "Device secrets"
    private static let signedRule = "Signed connects"

    static let secrets: [Case] = [
        Case("secret/stays", secretRule) { stage in
            let first = try await stage.open()
            try expectSecret(first.connect)
            await stage.program.killed()
            let second = try await stage.open()
            try Mismatch.unless(
                second.connect.deviceSecret == first.connect.deviceSecret, "the secret of the start before",
                seen: "another one")
        },
        Case("close/5004-registers-anew", secretRule) { stage in
            let first = try await stage.open()
            try expectSecret(first.connect)
            first.push(0, 2, [1, 2])
            try await first.expectAcknowledged(2)
            first.close(5004)
            let second = try await stage.accept()
            try Mismatch.unless(
                second.connect.deviceID != first.connect.deviceID
                    && second.connect.deviceSecret != first.connect.deviceSecret,
                "a new device_id and device_secret", seen: second.connect.deviceID)
            try Mismatch.unless(second.position == 2, "the user's position 2", seen: "\(second.position)")
            second.push(2, 3, [3])
            try await second.expectAcknowledged(3)
            try await stage.expectShown([1, 2, 3])
        },
    ]

    /// For a command that signs by the key that the kit is told.
    static let signed: [Case] = [
        Case("signed/anew-for-each-connect", signedRule) { stage in
            let first = try await stage.open()
            try expectSignature(first.connect, stage)
            first.close(1000)
            let second = try await stage.accept()
            try expectSignature(second.connect, stage)
            try Mismatch.unless(
                first.connect.signature.nonce != second.connect.signature.nonce, "another nonce", seen: "the same")
        },
        Case("signed/by-the-clock-that-it-is-told", signedRule) { stage in
            try stage.start()
            let first = try await stage.next()
            let told: Int64 = 1_800_000_000_000
            first.close(1002) { $0.serverTimeMs = told }
            let second = try await stage.next()
            try expectSignature(second.connect, stage)
            try Mismatch.unless(
                (told...told + 60_000).contains(second.connect.signature.timestampMs),
                "a timestamp of the time told, \(told)", seen: "\(second.connect.signature.timestampMs)")
        },
    ]

    private static func expectSecret(_ connect: Mss_Device_V1_Connect) throws {
        guard !connect.deviceSecret.isEmpty else { throw NotSupported("the client shows no device_secret") }
        try Mismatch.unless(
            connect.deviceSecret.count == 32, "a device_secret of 32 bytes", seen: "\(connect.deviceSecret.count)")
    }

    private static func expectSignature(_ connect: Mss_Device_V1_Connect, _ stage: ClientStage) throws {
        guard let key = stage.bench.appKey else { throw NotSupported("--app-key is not given") }
        try Mismatch.unless(
            ConnectSignature.nonceBytes.contains(connect.signature.nonce.count), "a nonce of 16 to 32 bytes",
            seen: "\(connect.signature.nonce.count)")
        try Mismatch.unless(key.hasSigned(connect), "a signature by \(key.id)", seen: "\(connect.signature)")
    }
}
