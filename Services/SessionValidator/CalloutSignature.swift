import Credentials
import Foundation
import SyncModel

/// How a tenant knows that a call in mode `http` is ours: signed as backends sign theirs to us (spec H9), by a key of
/// the instance that is made for this; pure but for the nonce.
struct CalloutSignature {
    private static let nonceBytes = 16

    private let signature: RequestSignature
    private let key: CalloutKey
    private let timestamp: String
    private let nonce: String

    /// - Parameters:
    ///   - body: as it goes out.
    ///   - requestTarget: path and query as they go out.
    ///   - nonce: in hex; different with each call.
    init(
        of body: Data, to requestTarget: String, with key: CalloutKey, at time: WallTime,
        nonce: String = HexText.of(RandomBytes.make(nonceBytes))
    ) {
        self.key = key
        self.nonce = nonce
        timestamp = String(time.milliseconds)
        signature = RequestSignature(
            method: "POST", target: requestTarget, body: body, timestamp: timestamp, nonce: nonce, keyID: key.id)
    }

    /// The header fields that carry it.
    var headers: [(String, String)] {
        [
            ("X-MSS-Key", key.id), ("X-MSS-Timestamp", timestamp), ("X-MSS-Nonce", nonce),
            ("X-MSS-Signature", HexText.of(signature.code(with: key.secret))),
        ]
    }
}
