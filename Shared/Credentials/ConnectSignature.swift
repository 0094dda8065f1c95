package import Crypto

/// The signature of a device's Connect by a key of its app (DeviceProtocol.md, Signed connects; spec H9).
package enum ConnectSignature {
    /// How far a device's clock may be from the gateway's, in either direction.
    package static let tolerance = RequestSignature.skew
    /// Bytes of a nonce.
    package static let nonceBytes = RequestSignature.nonceBytes
    /// Names what is signed, so that no signature of another kind of message is one of a Connect.
    private static let label = "mss-connect-1"

    /// HMAC-SHA256 over the label and the parts.
    ///
    /// - Parameter parts: the fields of a Connect in the order of the protocol's text.
    package static func mac(of parts: [[UInt8]], by key: SymmetricKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: text(of: parts), using: key))
    }

    /// Whether a signature is of these parts and by this key, in a time that does not depend on what is wrong.
    package static func isValid(_ mac: [UInt8], of parts: [[UInt8]], by key: SymmetricKey) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(mac, authenticating: text(of: parts), using: key)
    }

    /// What is signed: the label and the parts.
    package static func text(of parts: [[UInt8]]) -> [UInt8] {
        LengthPrefixed.bytes(of: [Array(label.utf8)] + parts)
    }
}
