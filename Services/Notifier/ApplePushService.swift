import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization

/// Apple's push service over HTTP/2, by token authentication.
final class ApplePushService: PushProvider {
    private struct Claims: Encodable {
        let iss: String
        let iat: Int
    }

    private struct Refusal: Decodable {
        let reason: String
    }

    /// The proof that goes with each request. Apple refuses one older than an hour, and a new one within 20 minutes.
    private struct Proof {
        let text: String
        let madeAt: ContinuousClock.Instant
    }

    private static let proofLife = Duration.seconds(40 * 60)
    private static let leastProofLife = Duration.seconds(20 * 60)
    private static let limit = TimeAmount.seconds(10)
    /// How long Apple keeps a wake-up for a phone that is off: data waits for days, and a newer wake-up replaces it.
    private static let keptFor = 86_400.0
    /// No text, no sound, no badge: the app is started in the background.
    private static let body = ByteBuffer(string: #"{"aps":{"content-available":1}}"#)

    private let client: HTTPClient
    private let app: WakeUpApps.APNs
    private let url: String
    private let key: P256.Signing.PrivateKey
    private let proof = Mutex<Proof?>(nil)

    init(_ app: WakeUpApps.APNs, over client: HTTPClient) throws(FileProblem) {
        self.app = app
        self.client = client
        url = app.url ?? "https://api.push.apple.com"
        let pem = String(decoding: try FileProblem.contents(of: app.keyFile, named: "apns.keyFile"), as: UTF8.self)
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else {
            throw FileProblem(
                description: "apns.keyFile: \(app.keyFile) is no PEM of a P-256 key; take the .p8 file that Apple gives"
            )
        }
        self.key = key
    }

    func wake(_ token: String) async -> WakeUpOutcome {
        do {
            let outcome = try await ask(token)
            guard outcome == .refused("ExpiredProviderToken"), forgetProof() else { return outcome }
            return try await ask(token)
        } catch {
            // Nobody there, no answer in time: as much its trouble as ours.
            return .later(nil)
        }
    }

    private func ask(_ token: String) async throws -> WakeUpOutcome {
        var request = HTTPClientRequest(url: "\(url)/3/device/\(token)")
        request.method = .POST
        request.headers = [
            "authorization": "bearer \(try currentProof())", "apns-topic": app.topic, "apns-push-type": "background",
            // The only one that a silent push may have.
            "apns-priority": "5",
            "apns-expiration": "\(Int(Date.now.timeIntervalSince1970 + Self.keptFor))", "apns-collapse-id": "mss",
        ]
        request.body = .bytes(Self.body)
        let response = try await client.execute(request, timeout: Self.limit)
        let body = try await response.body.collect(upTo: 4_096)
        let reason = (try? JSONDecoder().decode(Refusal.self, from: Data(body.readableBytesView)))?.reason ?? ""
        return Self.outcome(of: response.status.code, reason, retryAfter: response.headers.first(name: "retry-after"))
    }

    /// What an answer means (Apple, Handling notification responses from APNs).
    static func outcome(of status: UInt, _ reason: String, retryAfter: String?) -> WakeUpOutcome {
        switch status {
        case 200: .taken
        case 410: .gone
        case 400 where reason == "BadDeviceToken": .gone
        case 429, 500...599: .later(retryAfter.flatMap { Int($0) }.map { .seconds($0) })
        default: .refused(reason.isEmpty ? "status \(status)" : reason)
        }
    }

    private func currentProof() throws -> String {
        try proof.withLock { proof in
            if let proof, proof.madeAt.duration(to: .now) < Self.proofLife { return proof.text }
            let claims = Claims(iss: app.teamId, iat: Int(Date.now.timeIntervalSince1970))
            let text = try SignedToken.make(keyID: app.keyId, claims: claims, signedBy: .p256(key))
            proof = Proof(text: text, madeAt: .now)
            return text
        }
    }

    /// Whether there will be another: a new one too soon is refused as well.
    private func forgetProof() -> Bool {
        proof.withLock { proof in
            guard let held = proof, held.madeAt.duration(to: .now) >= Self.leastProofLife else { return false }
            proof = nil
            return true
        }
    }
}
