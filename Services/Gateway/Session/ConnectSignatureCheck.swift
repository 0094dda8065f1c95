import Credentials
import Crypto
import DeviceProtocol
import SyncModel

/// The result of checking the signature of a Connect (DeviceProtocol.md, Signed connects; H9, SEC9).
enum ConnectSignatureCheck: Hashable {
    /// The instance requires no signature.
    case notNeeded
    /// Valid, with a current timestamp. The Connect is accepted if its nonce is new.
    case signed(NonceClaim)
    /// Valid, but the device's clock is wrong.
    case clockOff
    /// Missing, wrong, or signed with an unknown key. The device is not told which.
    case refused
    /// This gateway cannot decrypt the key.
    case unavailable

    /// Replaces an unknown key, so that guessing key ids takes as long as guessing signatures.
    private static let placeholderKey = SymmetricKey(size: .bits256)

    /// Checks a Connect to an instance.
    static func check(
        _ connect: Mss_Device_V1_Connect, to instance: Instance, in context: SessionContext
    ) -> ConnectSignatureCheck {
        guard instance.requiresSignature else { return .notNeeded }
        let (signature, parts) = (connect.signature, connect.signedParts)
        let mac = [UInt8](signature.mac)
        guard let key = instance.keys(for: .device).first(where: { $0.id.isSame(as: signature.keyID) }) else {
            _ = ConnectSignature.isValid(mac, of: parts, by: placeholderKey)
            return .refused
        }
        guard let secret = context.functions.openKey(key, instance.id) else { return .unavailable }
        guard ConnectSignature.isValid(mac, of: parts, by: secret),
            ConnectSignature.nonceBytes.contains(signature.nonce.count)
        else { return .refused }
        let tolerance = ConnectSignature.tolerance.wholeMilliseconds
        let now = context.machineTime.milliseconds
        guard (now - tolerance...now + tolerance).contains(signature.timestampMs) else { return .clockOff }
        return .signed(
            NonceClaim(
                keyID: key.id, nonce: [UInt8](signature.nonce),
                expiresAt: WallTime(milliseconds: signature.timestampMs + 2 * tolerance)))
    }
}

/// A nonce that a signed Connect uses.
struct NonceClaim: Hashable, Sendable {
    var keyID: String
    var nonce: [UInt8]
    /// Twice the tolerance after the timestamp: no gateway accepts the timestamp then, even with a wrong clock.
    var expiresAt: WallTime
}
