import DeviceProtocol
import Foundation
import SwiftProtobuf

/// The device secret.
enum ClientSecretCases {
    private static let rule = "Device secrets"

    static let all: [ClientCase] = [
        ClientCase("secret/stays", rule) { setup in
            let first = try await setup.open()
            try expectSecret(first.connect)
            await setup.program.killed()
            let second = try await setup.open()
            try Mismatch.unless(
                second.connect.deviceSecret == first.connect.deviceSecret, "the secret of the previous start",
                seen: "a different secret")
        },
        ClientCase("close/5004-registers-anew", rule) { setup in
            let first = try await setup.open()
            try expectSecret(first.connect)
            first.push(0, 2, [1, 2])
            try await first.expectAcknowledged(2)
            first.close(5004)
            let second = try await setup.accept()
            try Mismatch.unless(
                second.connect.deviceID != first.connect.deviceID
                    && second.connect.deviceSecret != first.connect.deviceSecret,
                "a new device_id and device_secret", seen: second.connect.deviceID)
            try Mismatch.unless(second.position == 2, "the user's position 2", seen: "\(second.position)")
            second.push(2, 3, [3])
            try await second.expectAcknowledged(3)
            try await setup.expectShown([1, 2, 3])
        },
    ]

    private static func expectSecret(_ connect: Mss_Device_V1_Connect) throws {
        guard !connect.deviceSecret.isEmpty else { throw NotSupported("the client sends no device_secret") }
        try Mismatch.unless(
            connect.deviceSecret.count == 32, "a device_secret of 32 bytes", seen: "\(connect.deviceSecret.count)")
    }
}
