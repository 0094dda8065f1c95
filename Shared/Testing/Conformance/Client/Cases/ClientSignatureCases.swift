import Credentials
import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf

/// Signed connects, for a command that signs with the key of the suite's options.
enum ClientSignatureCases {
    private static let rule = "Signed connects"

    static let all: [ClientCase] = [
        ClientCase("signed/anew-for-each-connect", rule) { setup in
            let first = try await setup.open()
            try expectSignature(first.connect, setup)
            first.close(1000)
            let second = try await setup.accept()
            try expectSignature(second.connect, setup)
            try Mismatch.unless(
                first.connect.signature.nonce != second.connect.signature.nonce, "another nonce", seen: "the same")
        },
        ClientCase("signed/by-the-clock-that-it-is-told", rule) { setup in
            try setup.start()
            let first = try await setup.next()
            let told: Int64 = 1_800_000_000_000
            first.close(1002) { $0.serverTimeMs = told }
            let second = try await setup.next()
            try expectSignature(second.connect, setup)
            try Mismatch.unless(
                (told...told + 60_000).contains(second.connect.signature.timestampMs),
                "a timestamp by the gateway's time \(told)", seen: "\(second.connect.signature.timestampMs)")
        },
    ]

    private static func expectSignature(_ connect: Mss_Device_V1_Connect, _ setup: ClientCaseSetup) throws {
        guard let key = setup.bench.appKey else { throw NotSupported("--app-key is missing") }
        try Mismatch.unless(
            ConnectSignature.nonceBytes.contains(connect.signature.nonce.count), "a nonce of 16 to 32 bytes",
            seen: "\(connect.signature.nonce.count)")
        try Mismatch.unless(key.hasSigned(connect), "a signature by \(key.id)", seen: "\(connect.signature)")
    }
}
