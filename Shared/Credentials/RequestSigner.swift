package import Crypto
package import Foundation
package import SyncModel

/// Signs requests as a backend does (spec H9): the tool its calls of the API, the validator its calls of tenants.
package struct RequestSigner: Sendable {
    package let keyID: String
    package let secret: SymmetricKey

    package init(keyID: String, secret: SymmetricKey) {
        self.keyID = keyID
        self.secret = secret
    }

    /// The headers of one request; a request that is repeated needs new ones.
    ///
    /// - Parameters:
    ///   - target: path and query as they go out.
    ///   - nonce: random, and different with each request.
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
