import Crypto
import CryptoExtras
import Foundation

/// A JSON Web Token (RFC 7519) that authenticates the notifier to a push provider, and the keys that sign it.
enum SignedToken {
    /// The key that signs the token.
    enum Key: Sendable {
        /// ES256.
        case p256(P256.Signing.PrivateKey)
        /// RS256.
        case rsa(_RSA.Signing.PrivateKey)

        fileprivate var algorithm: String {
            switch self {
            case .p256: "ES256"
            case .rsa: "RS256"
            }
        }

        fileprivate func signature(of data: Data) throws -> Data {
            switch self {
            case .p256(let key): try key.signature(for: data).rawRepresentation
            case .rsa(let key): try key.signature(for: data, padding: .insecurePKCS1v1_5).rawRepresentation
            }
        }
    }

    private struct Header: Encodable {
        let alg: String
        let kid: String
        let typ = "JWT"
    }

    /// The token's text.
    ///
    /// - Parameter claims: the claims, encoded as one JSON object.
    static func make(keyID: String, claims: some Encodable, signedBy key: Key) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let header = try encoder.encode(Header(alg: key.algorithm, kid: keyID))
        let signed = "\(base64URL(header)).\(base64URL(try encoder.encode(claims)))"
        return "\(signed).\(base64URL(try key.signature(of: Data(signed.utf8))))"
    }

    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
