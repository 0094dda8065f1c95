import Crypto
import Foundation

/// Seals the secrets of second factors for the database, with a key that only consoles have (reliability SEC16).
struct SecondFactorSeal: Sendable {
    private let key: SymmetricKey

    /// - Parameter text: Base64 of 32 bytes; nil is returned for anything else.
    init?(text: String) {
        guard let bytes = Data(base64Encoded: text.trimmed), bytes.count == 32 else { return nil }
        key = SymmetricKey(data: bytes)
    }

    /// Bound to the account: in another's row it opens nothing.
    func seal(_ secret: [UInt8], of account: String) -> [UInt8]? {
        (try? AES.GCM.seal(secret, using: key, authenticating: Array(account.utf8)))?.combined.map { Array($0) }
    }

    /// Nil: it was sealed with another key, or for another account.
    func open(_ sealed: [UInt8], of account: String) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed) else { return nil }
        return (try? AES.GCM.open(box, using: key, authenticating: Array(account.utf8))).map { Array($0) }
    }
}
