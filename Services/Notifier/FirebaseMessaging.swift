import AsyncHTTPClient
import CryptoExtras
import Foundation
import NIOCore
import NIOHTTP1

/// Sends wake-ups through Firebase Cloud Messaging, HTTP v1. A service account gets an access token, which
/// authenticates each request.
actor FirebaseMessaging: PushProvider {
    /// The needed members of Google's file.
    private struct ServiceAccount: Decodable {
        let projectId: String
        let privateKeyId: String
        let privateKey: String
        let clientEmail: String
        let tokenUri: String

        enum CodingKeys: String, CodingKey {
            case projectId = "project_id"
            case privateKeyId = "private_key_id"
            case privateKey = "private_key"
            case clientEmail = "client_email"
            case tokenUri = "token_uri"
        }
    }

    private struct Claims: Encodable {
        let iss, scope, aud: String
        let iat, exp: Int
    }

    private struct Grant: Decodable {
        let accessToken: String
        let expiresIn: Int

        enum CodingKeys: String, CodingKey {
            case accessToken = "access_token"
            case expiresIn = "expires_in"
        }
    }

    private struct Message: Encodable {
        struct Content: Encodable {
            struct Android: Encodable {
                // The only priority that wakes a dozing device.
                let priority = "high"
                let ttl = "86400s"
                let collapseKey = "mss"

                enum CodingKeys: String, CodingKey {
                    case priority, ttl
                    case collapseKey = "collapse_key"
                }
            }

            let token: String
            let android = Android()
            // Data without a notification, so the device shows nothing.
            let data = ["mss": "wake"]
        }

        let message: Content
    }

    private struct Refusal: Decodable {
        struct Fault: Decodable {
            struct Detail: Decodable { let errorCode: String? }
            let status: String?
            let details: [Detail]?
        }

        let error: Fault
    }

    private struct AccessToken {
        let text: String
        let validUntil: ContinuousClock.Instant
    }

    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    private static let limit = TimeAmount.seconds(10)
    /// The access token is renewed so long before its end.
    private static let margin = Duration.seconds(60)

    private let client: HTTPClient
    private let account: ServiceAccount
    private let url: String
    private let key: _RSA.Signing.PrivateKey
    private var accessToken: AccessToken?
    /// The callers that wait while one caller requests a new token; nil: no request is in flight.
    private var waiters: [CheckedContinuation<String, any Error>]?

    init(_ app: WakeUpApps.FCM, over client: HTTPClient) throws(FileProblem) {
        self.client = client
        url = app.url ?? "https://fcm.googleapis.com"
        account = try FileProblem.json(
            ServiceAccount.self, of: app.serviceAccountFile, named: "fcm.serviceAccountFile")
        guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: account.privateKey) else {
            throw FileProblem(
                description:
                    "fcm.serviceAccountFile: the private_key in \(app.serviceAccountFile) is not a PEM of an RSA "
                    + "key; use the unchanged file from Google")
        }
        self.key = key
    }

    func wake(_ token: String) async -> WakeUpOutcome {
        do {
            let access = try await currentAccess()
            let outcome = try await send(token, access)
            guard outcome == .refused("UNAUTHENTICATED") else { return outcome }
            if accessToken?.text == access { accessToken = nil }
            return try await send(token, try await currentAccess())
        } catch let refusal as GrantRefused {
            return .refused(refusal.reason)
        } catch {
            return .later(nil)
        }
    }

    private func send(_ token: String, _ access: String) async throws -> WakeUpOutcome {
        var request = HTTPClientRequest(url: "\(url)/v1/projects/\(account.projectId)/messages:send")
        request.method = .POST
        request.headers = ["authorization": "Bearer \(access)", "content-type": "application/json"]
        request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(Message(message: .init(token: token)))))
        let response = try await client.execute(request, timeout: Self.limit)
        let body = try await response.body.collect(upTo: 16_384)
        let fault = (try? JSONDecoder().decode(Refusal.self, from: Data(body.readableBytesView)))?.error
        let code = fault?.details?.compactMap(\.errorCode).first ?? fault?.status ?? ""
        return Self.outcome(of: response.status.code, code, retryAfter: response.headers.first(name: "retry-after"))
    }

    /// The outcome of a response (Google, FCM error codes).
    static func outcome(of status: UInt, _ code: String, retryAfter: String?) -> WakeUpOutcome {
        switch status {
        case 200: .taken
        case 404 where code == "UNREGISTERED": .gone
        case 401: .refused("UNAUTHENTICATED")
        case 429, 500...599: .later(retryAfter.flatMap { Int($0) }.map { .seconds($0) })
        default: .refused(code.isEmpty ? "status \(status)" : code)
        }
    }

    /// Google refuses an access token for this service account.
    private struct GrantRefused: Error {
        let reason: String
    }

    private func currentAccess() async throws -> String {
        if let accessToken, accessToken.validUntil > .now { return accessToken.text }
        guard waiters == nil else { return try await withCheckedThrowingContinuation { waiters?.append($0) } }
        waiters = []
        do {
            let text = try await renew()
            resumeWaiters(.success(text))
            return text
        } catch {
            resumeWaiters(.failure(error))
            throw error
        }
    }

    private func resumeWaiters(_ result: Result<String, any Error>) {
        for continuation in waiters ?? [] { continuation.resume(with: result) }
        waiters = nil
    }

    /// Requests an access token with a signed assertion (OAuth 2.0, RFC 7523).
    private func renew() async throws -> String {
        let now = Int(Date.now.timeIntervalSince1970)
        let claims = Claims(
            iss: account.clientEmail, scope: Self.scope, aud: account.tokenUri, iat: now, exp: now + 3_600)
        let assertion = try SignedToken.make(keyID: account.privateKeyId, claims: claims, signedBy: .rsa(key))
        var request = HTTPClientRequest(url: account.tokenUri)
        request.method = .POST
        request.headers = ["content-type": "application/x-www-form-urlencoded"]
        let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)"
        request.body = .bytes(ByteBuffer(string: form))
        let response = try await client.execute(request, timeout: Self.limit)
        let body = try await response.body.collect(upTo: 16_384)
        guard response.status == .ok else {
            if (400..<500).contains(response.status.code), response.status != .tooManyRequests {
                throw GrantRefused(reason: "no access token: status \(response.status.code)")
            }
            throw HTTPClientError.remoteConnectionClosed
        }
        let grant = try JSONDecoder().decode(Grant.self, from: Data(body.readableBytesView))
        let life = max(.zero, .seconds(grant.expiresIn) - Self.margin)
        accessToken = AccessToken(text: grant.accessToken, validUntil: .now + life)
        return grant.accessToken
    }
}
