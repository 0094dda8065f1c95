package import Crypto
package import Foundation
package import SyncModel

/// The signed text of an HTTP request (H9, SEC6). Both sides build it byte by byte from the transmitted request, so
/// that two requests with different meanings never have the same text.
///
/// The lines, with line feeds between them: `v1`, the method, path and sorted query, the body's SHA-256 in hex, the
/// timestamp, the nonce, the key's id. The host is not included, because balancers rewrite it.
package struct RequestSignature: Sendable {
    /// The largest difference between the timestamp and the service's clock, in either direction.
    package static let skew = Duration.seconds(300)
    /// Bytes of a nonce.
    package static let nonceBytes = 16...32
    /// Bytes of a signature.
    package static let bytes = 32

    /// The headers for the key, the timestamp, the nonce and the signature.
    package static let headerNames = ["X-MSS-Key", "X-MSS-Timestamp", "X-MSS-Nonce", "X-MSS-Signature"]

    /// The text that is signed.
    package let text: String

    /// - Parameters:
    ///   - target: path and query of the request line, without a change of the percent-encoding.
    ///   - timestamp: the text of the header, like nonce and keyID.
    package init(
        method: String, target: some StringProtocol, body: some DataProtocol, timestamp: String, nonce: String,
        keyID: String
    ) {
        let digest = HexText.of(SHA256.hash(data: body))
        text = ["v1", method, Self.sorted(target), digest, timestamp, nonce, keyID].joined(separator: "\n")
    }

    /// Signs with a key's secret.
    package func code(with secret: SymmetricKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: secret))
    }

    /// Whether the signature matches, in constant time.
    package func isValid(_ code: [UInt8], with secret: SymmetricKey) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: Data(text.utf8), using: secret)
    }

    /// The path, and after a question mark the parts of the query, separated by ampersands and sorted by their bytes.
    /// Without the mark if the query is absent or empty.
    private static func sorted(_ target: some StringProtocol) -> String {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return String(target) }
        let query = target.utf8[target.utf8.index(after: mark)...]
        guard !query.isEmpty else { return String(target[..<mark]) }
        // By bytes, so that a combining character after an ampersand does not hide it.
        let parts = query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        let ordered = parts.sorted { $0.lexicographicallyPrecedes($1) }
        return target[..<mark] + "?" + String(decoding: Array(ordered.joined(separator: "&".utf8)), as: UTF8.self)
    }
}

/// Signs HTTP requests (H9): calls of the tool to the API, and calls of the service to tenants.
package struct RequestSigner: Sendable {
    package let keyID: String
    package let secret: SymmetricKey

    package init(keyID: String, secret: SymmetricKey) {
        self.keyID = keyID
        self.secret = secret
    }

    /// The headers of one request. A repeated request needs new ones.
    ///
    /// - Parameters:
    ///   - target: path and query as they are sent.
    ///   - nonce: random and different for each request.
    package func headers(
        method: String, target: String, body: some DataProtocol, at time: WallTime,
        nonce: [UInt8] = RandomBytes.make(RequestSignature.nonceBytes.lowerBound)
    ) -> [(name: String, value: String)] {
        let (timestamp, nonceText) = (String(time.milliseconds), HexText.of(nonce))
        let signature = RequestSignature(
            method: method, target: target, body: body, timestamp: timestamp, nonce: nonceText, keyID: keyID)
        let values = [keyID, timestamp, nonceText, HexText.of(signature.code(with: secret))]
        return zip(RequestSignature.headerNames, values).map { (name: $0, value: $1) }
    }
}
