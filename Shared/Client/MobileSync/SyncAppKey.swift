import Credentials
import Crypto
package import DeviceProtocol
import Foundation

/// A key of the instance with which the app signs its connects, for instances whose signature switch is on (K7, H9).
///
/// Every copy of the app contains the key, so it identifies the app and not a user.
public struct SyncAppKey: Sendable, Hashable {
    /// The key's id, `appKey` of `meta.config`.
    public let id: String
    let secret: [UInt8]

    /// Creates a key from the output of `mssctl key create`.
    ///
    /// - Parameters:
    ///   - id: the key's id; `appKey` in `meta.config`.
    ///   - secret: the secret in Base64; `appSecret` in `meta.config`.
    /// - Throws: `SyncError.invalidArgument` when the id is empty, or when the secret is not Base64 of at least 16
    ///   bytes.
    public init(id: String, secret: String) throws(SyncError) {
        guard !id.isEmpty, let bytes = Data(base64Encoded: secret), bytes.count >= 16 else {
            throw SyncError(.invalidArgument, "an app key needs an id, and a secret of at least 16 bytes in Base64")
        }
        self.id = id
        self.secret = [UInt8](bytes)
    }
}

extension SyncAppKey {
    /// Whether this key has signed the Connect.
    package func hasSigned(_ connect: Mss_Device_V1_Connect) -> Bool {
        connect.signature.keyID == id
            && ConnectSignature.isValid(
                [UInt8](connect.signature.mac), of: connect.signedParts, by: SymmetricKey(data: secret))
    }
}
