import Credentials
import Crypto
import Foundation
import ServiceKit
import SyncModel

/// Signs calls of the API as a backend does (spec H9).
struct APISigner: Sendable {
    let keyID: String
    let secret: SymmetricKey

    /// The headers of one call; a call that is repeated needs new ones.
    func headers(method: String, target: String, body: some DataProtocol) -> [(name: String, value: String)] {
        let timestamp = "\(WallTime.now.milliseconds)"
        let nonce = HexText.of(RandomBytes.make(RequestSignature.nonceBytes.lowerBound))
        let signature = RequestSignature(
            method: method, target: target, body: body, timestamp: timestamp, nonce: nonce, keyID: keyID)
        return [
            ("X-MSS-Key", keyID), ("X-MSS-Timestamp", timestamp), ("X-MSS-Nonce", nonce),
            ("X-MSS-Signature", HexText.of(signature.code(with: secret))),
        ]
    }
}
