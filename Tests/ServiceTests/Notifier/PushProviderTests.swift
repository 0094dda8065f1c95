import Crypto
import Foundation
import ServiceKit
import Testing

@testable import Notifier

@Suite("Providers of silent pushes") struct PushProviderTests {
    private static let key = P256.Signing.PrivateKey()

    private static func decoded(_ part: Substring) throws -> Data {
        let base64 = part.replacing("-", with: "+").replacing("_", with: "/")
        return try #require(Data(base64Encoded: base64 + String(repeating: "=", count: (4 - base64.count % 4) % 4)))
    }

    @Test("a token has header, claims and a signature that the public key verifies") func token() throws {
        let token = try SignedToken.make(keyID: "k", claims: ["iss": "team"], signedBy: .p256(Self.key))
        let parts = token.split(separator: ".")
        #expect(parts.count == 3 && !token.contains("="))
        let header = try JSONDecoder().decode([String: String].self, from: Self.decoded(parts[0]))
        #expect(header == ["alg": "ES256", "kid": "k", "typ": "JWT"])
        #expect(try JSONDecoder().decode([String: String].self, from: Self.decoded(parts[1])) == ["iss": "team"])
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: Self.decoded(parts[2]))
        #expect(Self.key.publicKey.isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8)))
    }

    @Test(
        "answers of Apple",
        arguments: [
            (200, "", .taken), (410, "Unregistered", .gone), (400, "BadDeviceToken", .gone),
            // A wrong topic is an error in our settings, so it must not remove all tokens.
            (400, "DeviceTokenNotForTopic", .refused("DeviceTokenNotForTopic")),
            (403, "InvalidProviderToken", .refused("InvalidProviderToken")), (429, "TooManyRequests", .later(nil)),
            (503, "Shutdown", .later(nil)), (418, "", .refused("status 418")),
        ] as [(UInt, String, WakeUpOutcome)])
    func apple(status: UInt, reason: String, outcome: WakeUpOutcome) {
        #expect(ApplePushService.outcome(of: status, reason, retryAfter: nil) == outcome)
    }

    @Test(
        "answers of Google",
        arguments: [
            (200, "", .taken), (404, "UNREGISTERED", .gone), (404, "NOT_FOUND", .refused("NOT_FOUND")),
            (401, "THIRD_PARTY_AUTH_ERROR", .refused("UNAUTHENTICATED")),
            (403, "SENDER_ID_MISMATCH", .refused("SENDER_ID_MISMATCH")), (429, "QUOTA_EXCEEDED", .later(.seconds(7))),
            (500, "INTERNAL", .later(.seconds(7))),
        ] as [(UInt, String, WakeUpOutcome)])
    func google(status: UInt, code: String, outcome: WakeUpOutcome) {
        #expect(FirebaseMessaging.outcome(of: status, code, retryAfter: "7") == outcome)
    }

    @Test("unusable files are named, with the remedy") func problems() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "apps-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func problems(_ text: String?, _ more: [String: String] = [:]) throws -> [String] {
            let file = folder.appending(path: "apps.json")
            try? FileManager.default.removeItem(at: file)
            try text?.write(to: file, atomically: true, encoding: .utf8)
            let environment = ["MSS_NOTIFIER_APPS_FILE": file.path, "MSS_POSTGRES_USER": "u"].merging(more) { $1 }
            return NotifierSettings.problems(try Settings(NotifierSettings.keys, environment: environment))
        }
        let key = folder.appending(path: "key.p8").path
        try Self.key.pemRepresentation.write(toFile: key, atomically: true, encoding: .utf8)
        func apns(_ file: String) -> String {
            #"{"apps": [{"instanceId": "a", "apns": {"keyFile": "\#(file)", "keyId": "k", "teamId": "t", "topic": "b"}}]}"#
        }
        #expect(try problems(apns(key)).isEmpty)
        #expect(try problems(nil).first?.hasPrefix("MSS_NOTIFIER_APPS_FILE: the file ") == true)
        #expect(try problems("{}").first?.hasSuffix("lacks apps") == true)
        #expect(
            try problems(#"{"apps": [{"instanceId": "a", "fcm": {}}]}"#).first?.contains("serviceAccountFile") == true)
        #expect(
            try problems(apns("/nowhere")).first?.hasPrefix("apns.keyFile: the file /nowhere cannot be read") == true)
        let other = folder.appending(path: "apps.json").path
        #expect(try problems(apns(other)).first?.contains("use the .p8 file") == true)
        #expect(try problems(apns(key), ["MSS_NOTIFIER_PROXY": "proxy"]).first?.contains("host:port") == true)
        let authority = try problems(apns(key), ["MSS_NOTIFIER_AUTHORITY_FILE": other])
        #expect(authority.first?.hasPrefix("MSS_NOTIFIER_AUTHORITY_FILE: ") == true)
    }
}
