package import Crypto

/// The signature of a device's Connect by a key of its app (DeviceProtocol.md, Signed connects; H9).
package enum ConnectSignature {
    /// The largest difference between the clocks of device and gateway, in either direction.
    package static let tolerance = RequestSignature.skew
    /// Bytes of a nonce.
    package static let nonceBytes = RequestSignature.nonceBytes
    /// Separates this signature from signatures of other messages.
    private static let label = "mss-connect-1"

    /// HMAC-SHA256 over the label and the parts.
    ///
    /// - Parameter parts: the fields of a Connect in the order of DeviceProtocol.md.
    package static func mac(of parts: [[UInt8]], by key: SymmetricKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: text(of: parts), using: key))
    }

    /// Whether the signature matches the parts and the key, in constant time.
    package static func isValid(_ mac: [UInt8], of parts: [[UInt8]], by key: SymmetricKey) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(mac, authenticating: text(of: parts), using: key)
    }

    /// The signed bytes: the label and the parts.
    package static func text(of parts: [[UInt8]]) -> [UInt8] {
        LengthPrefixed.bytes(of: [Array(label.utf8)] + parts)
    }
}
