package import Crypto
package import Foundation

/// What the signature of an HTTP request is made over (spec H9, reliability SEC6): both sides write it down byte for
/// byte from the request as it travels, so that no two requests of different meaning have the same text.
///
/// Lines end with a line feed but the last: `v1`, the method, path and sorted query, the body's SHA-256 in hex, the
/// timestamp, the nonce, the key's id. The host is not in it, because balancers rewrite it.
package struct RequestSignature: Sendable {
    /// How far the timestamp may be from the service's clock, either way.
    package static let skew = Duration.seconds(300)
    /// Bytes of a nonce.
    package static let nonceBytes = 16...32
    /// Bytes of a signature.
    package static let bytes = 32

    /// The headers that carry it: key, timestamp, nonce and the signature itself.
    package static let headerNames = ["X-MSS-Key", "X-MSS-Timestamp", "X-MSS-Nonce", "X-MSS-Signature"]

    /// The text that is signed.
    package let text: String

    /// - Parameters:
    ///   - target: path and query as the request line has them, percent-encoding untouched.
    ///   - timestamp: the header's text, as are nonce and keyID.
    package init(
        method: String, target: some StringProtocol, body: some DataProtocol, timestamp: String, nonce: String,
        keyID: String
    ) {
        let digest = HexText.of(SHA256.hash(data: body))
        text = ["v1", method, Self.sorted(target), digest, timestamp, nonce, keyID].joined(separator: "\n")
    }

    /// The signature with a key's secret.
    package func code(with secret: SymmetricKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: secret))
    }

    /// Whether this is the signature; takes as long for any wrong one of the right length.
    package func isValid(_ code: [UInt8], with secret: SymmetricKey) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: Data(text.utf8), using: secret)
    }

    /// The path, and behind a question mark the query's parts between ampersands in the order of their bytes; without
    /// the mark when there is no query or an empty one.
    private static func sorted(_ target: some StringProtocol) -> String {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return String(target) }
        let query = target.utf8[target.utf8.index(after: mark)...]
        guard !query.isEmpty else { return String(target[..<mark]) }
        // By bytes: a letter that joins the ampersand before it must not hide it.
        let parts = query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        let ordered = parts.sorted { $0.lexicographicallyPrecedes($1) }
        return target[..<mark] + "?" + String(decoding: Array(ordered.joined(separator: "&".utf8)), as: UTF8.self)
    }
}
