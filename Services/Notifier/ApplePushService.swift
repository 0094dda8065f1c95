import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization

/// Sends wake-ups through Apple's push service over HTTP/2, with token authentication.
final class ApplePushService: PushProvider {
    private struct Claims: Encodable {
        let iss: String
        let iat: Int
    }

    private struct Refusal: Decodable {
        let reason: String
    }

    /// The token that authenticates each request. Apple refuses a token older than an hour, and a new token within 20
    /// minutes.
    private struct ProviderToken {
        let text: String
        let madeAt: ContinuousClock.Instant
    }

    private static let tokenLifetime = Duration.seconds(40 * 60)
    private static let shortestTokenLifetime = Duration.seconds(20 * 60)
    private static let limit = TimeAmount.seconds(10)
    /// The time in seconds for which Apple keeps a wake-up for a device that is offline. A newer wake-up replaces an
    /// older one.
    private static let keptFor = 86_400.0
    /// A silent push: it only starts the app in the background.
    private static let body = ByteBuffer(string: #"{"aps":{"content-available":1}}"#)

    private let client: HTTPClient
    private let app: WakeUpApps.APNs
    private let url: String
    private let key: P256.Signing.PrivateKey
    private let providerToken = Mutex<ProviderToken?>(nil)

    init(_ app: WakeUpApps.APNs, over client: HTTPClient) throws(FileProblem) {
        self.app = app
        self.client = client
        url = app.url ?? "https://api.push.apple.com"
        let pem = String(decoding: try FileProblem.contents(of: app.keyFile, named: "apns.keyFile"), as: UTF8.self)
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else {
            throw FileProblem(
                description: "apns.keyFile: \(app.keyFile) is not a PEM of a P-256 key; use the .p8 file from Apple"
            )
        }
        self.key = key
    }

    func wake(_ token: String) async -> WakeUpOutcome {
        do {
            let outcome = try await send(token)
            guard outcome == .refused("ExpiredProviderToken"), forgetProviderToken() else { return outcome }
            return try await send(token)
        } catch {
            // No connection or a time-out: the cause can be on either side, so the caller retries.
            return .later(nil)
        }
    }

    private func send(_ token: String) async throws -> WakeUpOutcome {
        var request = HTTPClientRequest(url: "\(url)/3/device/\(token)")
        request.method = .POST
        request.headers = [
            "authorization": "bearer \(try currentProviderToken())", "apns-topic": app.topic,
            "apns-push-type": "background",
            // The only priority that Apple allows for a silent push.
            "apns-priority": "5",
            "apns-expiration": "\(Int(Date.now.timeIntervalSince1970 + Self.keptFor))", "apns-collapse-id": "mss",
        ]
        request.body = .bytes(Self.body)
        let response = try await client.execute(request, timeout: Self.limit)
        let body = try await response.body.collect(upTo: 4_096)
        let reason = (try? JSONDecoder().decode(Refusal.self, from: Data(body.readableBytesView)))?.reason ?? ""
        return Self.outcome(of: response.status.code, reason, retryAfter: response.headers.first(name: "retry-after"))
    }

    /// The outcome of a response (Apple, Handling notification responses from APNs).
    static func outcome(of status: UInt, _ reason: String, retryAfter: String?) -> WakeUpOutcome {
        switch status {
        case 200: .taken
        case 410: .gone
        case 400 where reason == "BadDeviceToken": .gone
        case 429, 500...599: .later(retryAfter.flatMap { Int($0) }.map { .seconds($0) })
        default: .refused(reason.isEmpty ? "status \(status)" : reason)
        }
    }

    private func currentProviderToken() throws -> String {
        try providerToken.withLock { providerToken in
            if let providerToken, providerToken.madeAt.duration(to: .now) < Self.tokenLifetime {
                return providerToken.text
            }
            let claims = Claims(iss: app.teamId, iat: Int(Date.now.timeIntervalSince1970))
            let text = try SignedToken.make(keyID: app.keyId, claims: claims, signedBy: .p256(key))
            providerToken = ProviderToken(text: text, madeAt: .now)
            return text
        }
    }

    /// Drops the token if it is old enough to be replaced, since Apple refuses a new token that comes too soon. True:
    /// dropped.
    private func forgetProviderToken() -> Bool {
        providerToken.withLock { providerToken in
            guard let current = providerToken, current.madeAt.duration(to: .now) >= Self.shortestTokenLifetime else {
                return false
            }
            providerToken = nil
            return true
        }
    }
}
