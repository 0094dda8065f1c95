import Credentials
import Crypto
import Foundation
import Logging
import SyncModel
import SyncStore

/// Console sessions. They are in the database, so a sign-out at one console holds at all consoles.
struct Sessions: Sendable {
    let database: Database

    /// The account of a token; nil when the session does not exist or has ended.
    ///
    /// - Parameters:
    ///   - source: the source address of the request.
    ///   - isSignOfLife: whether the request extends the session. False for requests that a page sends by itself, so
    ///     that an abandoned page does not keep its session open.
    func principal(
        _ shown: (token: SessionToken, proof: RequestPrincipal.Proof)?, from source: String, isSignOfLife: Bool = true
    ) async throws(ConsoleFault) -> RequestPrincipal? {
        guard let shown else { return nil }
        let digest = shown.token.digest
        guard let session = try await database.run(ConsoleSessionStore.session(digest)) else { return nil }
        if session.isStale, isSignOfLife { try await database.run(ConsoleSessionStore.touch(digest)) }
        return RequestPrincipal(
            account: session.account, token: shown.token, proof: shown.proof, isConfirmed: session.isConfirmed,
            source: source)
    }

    /// Begins a session with a new token and records it; a token from before the sign-in is never reused.
    func begin(_ account: String, from source: String) async throws(ConsoleFault) -> SessionToken {
        let token = SessionToken()
        let actor = OperationActor("console:\(account)", from: source)
        try await database.run(ConsoleSessionStore.begin(token.digest, of: account, by: actor))
        return token
    }
}

/// The signed-in account of a request.
struct RequestPrincipal: Sendable {
    /// The place of a request's session token.
    enum Proof: Sendable {
        /// A browser's cookie. Other sites can cause the browser to send it, so changes need the form token as well.
        case cookie
        /// A program's header, which no site can cause a browser to send.
        case bearer
    }

    let account: ConsoleAccount
    let token: SessionToken
    let proof: Proof
    /// Whether the account has confirmed its password within the last five minutes.
    let isConfirmed: Bool

    /// The source address of the request.
    var source = ""

    /// The actor for audit records.
    var actor: OperationActor { OperationActor("console:\(account.name)", from: source) }
}

/// The secret of a console session: 256 random bits. The database stores only their digest.
struct SessionToken: Hashable, Sendable {
    private let bytes: [UInt8]

    /// A new random token.
    init() { bytes = RandomBytes.make(32) }

    /// Reads a token from a cookie or a header; nil when the form is wrong.
    init?(text: some StringProtocol) {
        guard let bytes = HexText.bytes(of: text), bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// The text for the cookie and the header.
    var text: String { HexText.of(bytes) }

    /// The digest for the database.
    var digest: [UInt8] { Array(SHA256.hash(data: bytes)) }

    /// The value that a page of this session sends in the header of a change. A page of another site does not know it
    /// (SEC13).
    var formToken: String {
        HexText.of(HMAC<SHA256>.authenticationCode(for: Array("form".utf8), using: SymmetricKey(data: bytes)))
    }
}

/// The cookie with a browser's session token (SEC13).
enum SessionCookie {
    /// With the prefix `__Host-`, browsers accept the cookie only if it is Secure, for this host and for every path.
    static let name = "__Host-mss-session"
    private static let attributes = "Path=/; Secure; HttpOnly; SameSite=Strict"

    /// The header that sets the cookie.
    static func set(_ token: SessionToken) -> (String, String) {
        ("Set-Cookie", "\(name)=\(token.text); \(attributes)")
    }

    /// The header that removes the cookie.
    static let removal = ("Set-Cookie", "\(name)=; Max-Age=0; \(attributes)")
}
