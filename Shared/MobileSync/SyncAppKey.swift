import Credentials
import Crypto
package import DeviceProtocol
import Foundation

/// A key of the instance that signs what the app connects with; for instances whose signature switch is on (spec K7,
/// H9).
///
/// It stands in every copy of the app, so it tells apps apart, not users.
public struct SyncAppKey: Sendable, Hashable {
    /// The key's id, `appKey` of `meta.config`.
    public let id: String
    let secret: [UInt8]

    /// A key as `mssctl key create` shows it.
    ///
    /// - Parameter secret: in Base64; `appSecret` of `meta.config`.
    /// - Throws: `SyncError.invalidArgument` when the id is empty or the secret is no Base64 text of 16 bytes or more.
    public init(id: String, secret: String) throws(SyncError) {
        guard !id.isEmpty, let bytes = Data(base64Encoded: secret), bytes.count >= 16 else {
            throw SyncError(.invalidArgument, "an app key has an id, and in Base64 a secret of at least 16 bytes")
        }
        self.id = id
        self.secret = [UInt8](bytes)
    }
}

extension SyncAppKey {
    /// Whether a Connect carries a signature by this key.
    package func hasSigned(_ connect: Mss_Device_V1_Connect) -> Bool {
        connect.signature.keyID == id
            && ConnectSignature.isValid(
                [UInt8](connect.signature.mac), of: connect.signedParts, by: SymmetricKey(data: secret))
    }
}
