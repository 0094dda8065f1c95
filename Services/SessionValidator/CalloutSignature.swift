import Crypto
import Foundation
import SyncModel

/// How a tenant knows that a call in mode `http` is ours: the scheme by which backends sign their calls to us (spec
/// H9), with the instance id as the key's name; pure but for the nonce.
struct CalloutSignature {
    private let text: String
    private let key: String
    private let timestamp: String
    private let nonce: String

    /// - Parameters:
    ///   - body: as it goes out.
    ///   - requestTarget: path and query as they go out.
    ///   - key: names the secret.
    ///   - nonce: 16 bytes in hexadecimal; different with each call.
    init(
        of body: Data, to requestTarget: String, key: String, at time: WallTime,
        nonce: String = UUID().uuidString.filter { $0 != "-" }.lowercased()
    ) {
        self.key = key
        self.nonce = nonce
        timestamp = String(time.milliseconds)
        text = ["v1", "POST", requestTarget, SHA256.hash(data: body).hexadecimal, timestamp, nonce, key]
            .joined(separator: "\n")
    }

    /// The header fields that carry it.
    func headers(secret: String) -> [(String, String)] {
        let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: SymmetricKey(data: Data(secret.utf8)))
        return [
            ("X-MSS-Key", key), ("X-MSS-Timestamp", timestamp), ("X-MSS-Nonce", nonce),
            ("X-MSS-Signature", code.hexadecimal),
        ]
    }
}

extension Sequence<UInt8> {
    /// Two lower-case digits for each byte.
    var hexadecimal: String {
        map { String(UInt16($0) | 0x100, radix: 16).suffix(2) }.joined()
    }
}
